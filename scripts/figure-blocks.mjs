/** The tables of figures, by the name of their block in the documentation. Each is made from docs/figures.json. */
export function figureBlocks({ runs, figures }) {
  const entry = (name) => {
    if (!figures[name]) throw new Error(`docs/figures.json has no figure "${name}"`)
    return figures[name]
  }
  const range = (values, digits) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map((it) => grouped(it.toFixed(digits)))
    return least === most ? least : `${least}–${most}`
  }
  const shown = (name) => {
    const { text, unit, digits, values } = entry(name)
    return text ?? `${range(values, digits)} ${unit}`.trimEnd()
  }
  /** Without the unit, which is in the heading. */
  const bare = (name) => range(entry(name).values, entry(name).digits)
  const named = (prefix) => Object.keys(figures).filter((name) => name.startsWith(prefix))

  const day = (date) =>
    new Date(date).toLocaleDateString('en-AU', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
  const describe = ({ date, commit, machine, how }) =>
    `${day(date)}, ${how}, at commit \`${commit}\`${machine ? `, on ${machine}` : ''}.`

  /** A table, and below it where its figures come from. A row is its cells, and the names of the figures in them. */
  function sourced(head, rows) {
    const used = [...new Set(rows.flatMap(([, names]) => names.map((name) => entry(name).run)))]
    if (used.length === 1) {
      return `${table(
        head,
        rows.map(([cells]) => cells),
      )}\n\nMeasured on ${describe(runs[used[0]])}`
    }
    const letter = (run) => String.fromCodePoint(97 + used.indexOf(run))
    const lettersOf = (names) => [...new Set(names.map((name) => letter(entry(name).run)))].join(', ')
    const body = table(
      [...head, 'Run'],
      rows.map(([cells, names]) => [...cells, lettersOf(names)]),
    )
    return `${body}\n\n${used.map((run) => `- Run ${letter(run)}: ${describe(runs[run])}`).join('\n')}`
  }

  const pair = (what, name, other) => [[what, shown(name), other ? shown(other) : ''], other ? [name, other] : [name]]
  const ratio = (what, name) => [[what, shown(name), '1'], [name]]
  const memoryThroughLines = `Memory of a replica through ${shown('batches.replicas.lines')} lines of batches`
  const beside = [
    ratio('CPU for each token, 200 streams', 'side-by-side.token'),
    ratio('CPU for a chat answer, at full load', 'side-by-side.chat.full load'),
    ratio('CPU for a chat answer, 500 a second', 'side-by-side.chat.500 a second'),
    ratio('CPU for a chat of 100 KB, at full load', 'side-by-side.large'),
    ratio('CPU for 2,048 × 1,024-d embeddings in base64', 'embeddings.Weir.ratio'),
    pair('CPU for a chat answer, including a durable write to the journal', 'side-by-side.chat.cpu'),
    pair('… of what Caddy needs to forward it', 'side-by-side.chat.of Caddy'),
    pair('Tokens a second of 800 streams on one core, of what nginx relays', 'side-by-side.saturated.of nginx'),
    pair('Memory of a held request of 2 KB', 'held.Weir.each', 'held.node:http.each'),
    pair('A 25 MiB upload adds', 'uploads.one'),
    pair('Idle service, no model loaded', 'idle.memory'),
    pair('Admission decisions a second, 10,000 waiting', 'admission.state machine: release, admit head, queue one'),
    pair('Token estimate of 2,000 characters', 'tokens.cost.2000'),
    pair('Places of an engine in use while a batch runs', 'batches.use.with'),
    pair('CPU for a line of a batch, from its upload to its result', 'batches.line'),
    [
      [memoryThroughLines, shown('batches.replicas.memory'), ''],
      ['batches.replicas.memory', 'batches.replicas.lines'],
    ],
    pair('A page of usage over 50 million rows', 'usage-page.50000000'),
    pair('Start to ready', 'start.few'),
    pair('… with 1,000 models and a million keys', 'start.many'),
  ]
  const inReadme = new Set([
    'CPU for each token, 200 streams',
    'CPU for a chat answer, at full load',
    'CPU for a chat answer, 500 a second',
    'Memory of a held request of 2 KB',
    'Idle service, no model loaded',
    'Places of an engine in use while a batch runs',
    'CPU for a line of a batch, from its upload to its result',
    memoryThroughLines,
    'Start to ready',
  ])

  const peers = ['Portkey', 'LiteLLM']
  const peerHead = (what) => [
    what,
    'Bare proxy',
    'Weir',
    ...peers.map((name) => `${name} ${shown(`peers.${name}.version`)}`),
  ]
  const peerRow = (what, figure, base) => {
    const names = ['Weir', ...peers].map((name) => `peers.${name}.${figure}`)
    const first = base ?? shown(`peers.bare proxy.${figure}`)
    return [[what, first, ...names.map(shown)], names]
  }

  const growthRow = (what, key) => {
    const countOf = (name) => Number(name.split('.').at(-1))
    const names = named(`growth.${key}.`).sort((one, other) => countOf(one) - countOf(other))
    return [[what, names.map((name) => amount(countOf(name))).join(', '), names.map(bare).join(', ')], names]
  }

  const consoleTable = (head, prefix) => {
    const calls = named(prefix).filter((name) => name.endsWith('.median'))
    const rows = calls.map((name) => {
      const call = name.slice(prefix.length, -'.median'.length)
      const names = ['first', 'median', 'slowest'].map((which) => `${prefix}${call}.${which}`)
      const cells = names.map((it) => (figures[it] ? bare(it) : ''))
      return [[call[0].toUpperCase() + call.slice(1), ...cells], [name]]
    })
    return sourced([head, 'first', 'median', 'slowest'], rows)
  }

  const searchTable = (database) => {
    const prefix = `requests.${database}.`
    const columns = { cpu: 'CPU', median: 'median', worst: 'worst', cold: 'first' }
    const measured = Object.keys(columns).filter((which) => named(prefix).some((name) => name.endsWith(`.${which}`)))
    const rows = named(prefix)
      .filter((name) => name.endsWith('.median'))
      .map((name) => {
        const search = name.slice(prefix.length, -'.median'.length)
        const names = measured.map((which) => `${prefix}${search}.${which}`)
        return [[search[0].toUpperCase() + search.slice(1), ...names.map(bare)], names]
      })
    return sourced([`Search on ${database}`, ...measured.map((which) => columns[which])], rows)
  }

  const tokenRow = ([what, kinds]) => {
    const ways = ['named.charged', 'named.likely', 'unnamed.charged', 'unnamed.likely']
    const names = ways.map((way) => kinds.flatMap((kind) => named(`tokens.${kind}.${way}.`)))
    const cell = (some) =>
      range(
        some.flatMap((name) => entry(name).values),
        2,
      )
    return [[what, ...names.map(cell)], names.flat()]
  }

  const textRow = (what, ...names) => [[what, ...names.map(shown)], names]
  const fleetRows = () =>
    named('fleet.')
      .filter((name) => name.endsWith('.oracle'))
      .map((name) => {
        const [, load, engines, replicas] = name.split('.')
        const policies = ['random', 'round robin', 'least busy', 'prefix', 'oracle']
        const names = policies.map((policy) => `fleet.${load}.${engines}.${replicas}.${policy}`)
        return [[load, engines, replicas, ...names.map(shown)], names]
      })
  return {
    'bare-proxy': () => sourced(['What', 'Weir', 'Bare proxy'], beside),
    readme: () =>
      table(
        ['What', 'Weir', 'Bare proxy'],
        beside.map(([cells]) => cells).filter(([what]) => inReadme.has(what)),
      ),
    gateways: () =>
      sourced(peerHead('What'), [
        peerRow('CPU for a chat answer', 'whole.ratio', '1'),
        peerRow('CPU for a stream of 64 tokens', 'stream.ratio', '1'),
        peerRow('Latency of a chat answer, one caller', 'whole.latency'),
        peerRow('Memory at rest', 'idle'),
      ]),
    'readme-gateways': () =>
      table(peerHead('Two busy cores'), [peerRow('CPU for a chat answer', 'whole.ratio', '1')[0]]),
    batches: () =>
      sourced(
        ['What', 'Without batches', 'With batches'],
        [
          textRow('Places of the engine in use', 'batches.use.without', 'batches.use.with'),
          textRow('Wait of online requests, 95th percentile', 'batches.wait.without', 'batches.wait.with'),
          [['CPU for a line, one process on SQLite', '', shown('batches.line')], ['batches.line']],
          [
            ['… four replicas on PostgreSQL and Redis, without theirs', '', shown('batches.replicas.line')],
            ['batches.replicas.line'],
          ],
          [
            [
              `Memory of a replica through ${shown('batches.replicas.lines')} lines`,
              '',
              shown('batches.replicas.memory'),
            ],
            ['batches.replicas.memory', 'batches.replicas.lines'],
          ],
        ],
      ),
    growth: () =>
      sourced(
        ['What there is more of', 'How many', 'CPU for a chat answer, µs'],
        [
          growthRow('Models', 'models'),
          growthRow('Keys', 'keys'),
          growthRow('Ledger rows', 'ledger rows'),
          growthRow('Requests waiting in a queue', 'requests in the queue'),
          growthRow('Concurrent streams (for each token)', 'streams at a time'),
        ],
      ),
    'console-pages': () =>
      sourced(
        ['After the address was opened', ''],
        [
          textRow('The frame of the page is painted', 'console-pages.frame'),
          textRow('… median of each kind of load', 'console-pages.frame.median'),
          textRow('The content follows', 'console-pages.content'),
        ],
      ),
    'console-member': () => consoleTable('Member’s console', 'console-rows.member: '),
    'console-operator': () => consoleTable('Operator’s console', 'console-rows.operator: '),
    'search-sqlite': () => searchTable('SQLite'),
    'search-postgres': () => searchTable('PostgreSQL'),
    'token-estimates': () =>
      sourced(
        ['Text', 'Named: charged', 'Named: context check', 'Not named: charged', 'Not named: context check'],
        tokenGroups.map(tokenRow),
      ),
    fleet: () =>
      sourced(['Load', 'Engines', 'Replicas', 'Random', 'Round robin', 'Least busy', 'Prefix', 'Oracle'], fleetRows()),
    'fleet-worst': () =>
      sourced(
        ['Load', 'What it is', 'Hits, of the oracle’s', 'Requests a second, of `least_busy`’s'],
        named('fleet-worst.')
          .filter((name) => name.endsWith('.what'))
          .map((name) => {
            const load = name.split('.')[1]
            return textRow(load, name, `fleet-worst.${load}.hits`, `fleet-worst.${load}.rate`)
          }),
      ),
    'console-postgres': () =>
      sourced(
        ['PostgreSQL', 'median'],
        named('console-postgres.').map((name) => [[name.slice('console-postgres.'.length), bare(name)], [name]]),
      ),
    replicas: () =>
      sourced(
        ['What', 'One worker', 'Two workers'],
        [
          textRow('Chat answers with 64 kept connections', 'workers.64.one', 'workers.64.two'),
          textRow('… with 256', 'workers.256.one', 'workers.256.two'),
          textRow('CPU for an answer, in all workers', 'workers.one worker.workers', 'workers.two workers.workers'),
          pair('… in Redis', 'workers.one worker.redis'),
          pair('… in PostgreSQL', 'workers.one worker.database'),
          [['Two workers, of what one serves', '1', shown('workers.two of one')], ['workers.two of one']],
          pair('Pairs of admit and release through one Redis', 'admission-redis.pairs.64'),
          pair('… if every request has to wait for its turn', 'admission-redis.pairs.1000'),
          pair('What Redis adds to a request at 500 a second, median', 'admission-redis.latency.p50'),
          pair('… for one in a hundred', 'admission-redis.latency.p99'),
          pair('Memory, besides `server.max_request_memory_bytes`', 'replica.memory'),
        ],
      ),
    sizes: () =>
      sourced(
        ['What', 'Size'],
        [
          textRow('`npm install --omit=dev --omit=optional`: the gateway', 'sizes.gateway'),
          textRow('`npm install --omit=dev`: with what runs local models', 'sizes.with local models'),
          textRow('The image `gateway`, without Node', 'sizes.image'),
          textRow('What a first start fetches to run local models (llama.cpp, ONNX Runtime)', 'sizes.runtimes'),
          textRow('The models that it fetches then', 'sizes.default models'),
          textRow('The CUDA and Vulkan binaries of llama.cpp, which are not installed', 'sizes.GPU binaries'),
        ],
      ),
    'chat-quality': () =>
      sourced(
        ['Chat model', 'Right', 'Wrong'],
        [
          textRow('Qwen2.5-Coder 0.5B', 'quality.qwen2.5-coder.right', 'quality.qwen2.5-coder.wrong'),
          textRow('Qwen2.5-Coder 1.5B', 'quality.qwen2.5-coder-1.5b.right', 'quality.qwen2.5-coder-1.5b.wrong'),
          textRow('SmolLM2 135M', 'quality.smollm2.right', 'quality.smollm2.wrong'),
        ],
      ),
    'speech-quality': () => {
      const clips = ['jfk', 'german', 'spanish', 'german to English', 'spanish to English']
      const row = (what, model) => textRow(what, ...clips.map((clip) => `quality.${model}.${clip}`))
      return sourced(
        ['Speech model', 'English', 'German', 'Spanish', 'German translated', 'Spanish translated'],
        [
          row('Moonshine tiny', 'moonshine-tiny'),
          row('Whisper tiny', 'whisper-tiny'),
          row('Whisper base', 'whisper-base'),
          row('Whisper small', 'whisper-small'),
        ],
      )
    },
    'local-speed': () =>
      sourced(
        ['What', 'How fast'],
        [
          textRow('MiniLM reads', 'local-speed.MiniLM'),
          textRow('A starter picture takes', 'local-speed.starter picture'),
          textRow('whisper-base takes for a clip', 'local-speed.whisper-base'),
          textRow('First token through the service, of node-llama-cpp called directly', 'embedded.first token later'),
          textRow('Tokens a second, of node-llama-cpp called directly', 'embedded.share of the tokens'),
        ],
      ),
    gpu: () => {
      const row = (what) =>
        textRow(what, ...['first token', 'tokens', 'prompt', 'together'].map((it) => `gpu.${what}.${it}`))
      return sourced(
        [
          '',
          'One chat: first token',
          'One chat: tokens/s',
          '1698 tokens of prompt',
          'Chats at once: tokens/s together',
        ],
        ['no GPU', 'the package for CUDA 12', "llama.cpp's CUDA part compiled there, for this GPU"].map(row),
      )
    },
    'gpu-start': () =>
      sourced(
        ['With the package for CUDA 12', ''],
        [
          textRow('First answer, while the driver compiles its code', 'gpu.first answer'),
          textRow('First embedding', 'gpu.first embedding'),
          textRow('First answer after the next start', 'gpu.first answer later'),
          textRow('Memory of the GPU that the host used, with all 23 layers', 'gpu.memory'),
        ],
      ),
  }
}

const tokenGroups = [
  ['English prose and questions', ['English prose', 'English questions']],
  ['code, Markdown', ['code: TypeScript', 'code: Python', 'code: SQL and shell', 'Markdown']],
  ['JSON, logs', ['JSON', 'JSON, indented', 'log lines']],
  ['German, French, Spanish, Polish, Vietnamese', ['German', 'French and Spanish', 'Vietnamese and Polish']],
  ['Russian, Greek, Hebrew, Arabic', ['Russian', 'Greek and Hebrew', 'Arabic']],
  ['Hindi, Thai, Tamil', ['Hindi', 'Thai and Tamil']],
  ['Chinese, Japanese, Korean', ['Chinese', 'Japanese', 'Korean']],
  ['emoji, mathematics', ['emoji', 'mathematics and symbols']],
  ['hexadecimal, UUIDs, base64', ['hexadecimal', 'UUIDs and keys', 'base64']],
  ['digits without a break', ['digits']],
  ['**built to be hard**: random letters or marks, rare scripts', ['random letters', 'punctuation', 'rare scripts']],
  ['one letter, hundreds of times', ['one letter, repeated']],
]

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function grouped(text) {
  return text.replaceAll(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',')
}

function amount(count) {
  return count >= 1e6 ? `${count / 1e6} million` : grouped(String(count))
}
