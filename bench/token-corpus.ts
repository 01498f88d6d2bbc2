import { seededRandom } from '../src/shared/seeded-random.ts'

/** Sample texts by kind. Some are written for this purpose; others are generated from a seed. */
export const corpus: Readonly<Record<string, string>> = {
  'English prose': `A weir is a low wall across a river. It does not stop the water; it decides how fast the water may go on. Behind it the river rises a little, becomes slow and patient, and waits for its turn to fall. Millers built weirs to steady their wheels, fishermen to gather eels, and towns to keep their quays from drying out in August. On a quiet morning you can hear one from half a mile away: a long, even breath that never changes its mind.

"You can't argue with it," the lock-keeper told me, leaning on the beam. "Folk try. They come down after the rain, they see all that water standing there, and they say: why don't you let it through? And I say: because of the people downstream." He poured tea from a dented flask, offered me the cup, and went on watching the gauge. In thirty-one years he had opened the big sluice exactly four times; each time, he said, he had been wrong about how long he would need it. The river, meanwhile, went by at the rate the bed below could take.`,

  'English questions': `What's the difference between TCP and UDP, and when should I use one over the other?
Please summarise the following email in two sentences and suggest a polite reply.
I'm planning a 5-day trip to Tasmania in March with two kids (6 and 9). Can you draft an itinerary? We don't want to drive more than 3 hours a day.
Explain recursion to me like I'm twelve.
My landlord says I owe $1,250 for repainting, but I lived there for almost seven years. Is that normal wear and tear in NSW?
Translate "good morning, how did you sleep?" into French, Italian and Portuguese.`,

  'code: TypeScript': `import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Counter {
  readonly name: string
  increment(by?: number): void
  value(): number
}

/** Counts requests per path; forgets paths that nobody has asked for in an hour. */
export function openCounters(now: () => number, maxAgeMs = 3_600_000): Map<string, Counter> {
  const counters = new Map<string, Counter & { lastUsed: number }>()
  const timer = setInterval(() => {
    for (const [path, counter] of counters) {
      if (now() - counter.lastUsed > maxAgeMs) counters.delete(path)
    }
  }, 60_000)
  timer.unref()
  return counters
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  if (request.method !== 'GET' || !url.pathname.startsWith('/api/')) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\\n')
    return
  }
  const body = JSON.stringify({ path: url.pathname, at: Date.now(), ok: true })
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
})
server.listen(0, () => console.log(\`listening on \${(server.address() as AddressInfo).port}\`))`,

  'code: Python': `from dataclasses import dataclass, field
import heapq


@dataclass(order=True)
class Event:
    at: float
    name: str = field(compare=False)
    payload: dict = field(compare=False, default_factory=dict)


class Simulation:
    """Runs events in the order of their time; handlers may schedule further ones."""

    def __init__(self, handlers):
        self._queue: list[Event] = []
        self._handlers = handlers
        self.now = 0.0

    def schedule(self, delay, name, **payload):
        if delay < 0:
            raise ValueError(f"cannot schedule {name!r} in the past: {delay}")
        heapq.heappush(self._queue, Event(self.now + delay, name, payload))

    def run(self, until=float("inf")):
        while self._queue and self._queue[0].at <= until:
            event = heapq.heappop(self._queue)
            self.now = event.at
            for handler in self._handlers.get(event.name, ()):
                handler(self, **event.payload)
        return self.now


if __name__ == "__main__":
    counts = {}
    def tick(sim, n):
        counts[n % 3] = counts.get(n % 3, 0) + 1
        sim.schedule(0.5, "tick", n=n + 1)
    sim = Simulation({"tick": [tick]})
    sim.schedule(0, "tick", n=0)
    print(sim.run(until=100), sorted(counts.items()))`,

  'code: SQL and shell': `SELECT w.name, date_trunc('day', l.settled_at) AS day, count(*) AS requests,
       sum(l.input_tokens) AS input, sum(l.output_tokens) AS output
FROM ledger l JOIN workspaces w ON w.id = l.workspace_id
WHERE l.settled_at >= $1 AND l.settled_at < $2 AND l.outcome <> 'interrupted'
GROUP BY w.name, 2 HAVING sum(l.amount_pico_aud) > 0 ORDER BY 2 DESC, 1 LIMIT 100;

#!/usr/bin/env bash
set -euo pipefail
for file in "$@"; do
  [[ -f $file ]] || { echo "skip $file" >&2; continue; }
  sha256sum "$file" | awk '{print $1}' >>"\${TMPDIR:-/tmp}/sums.$$"
done
curl -fsS -H "Authorization: Bearer $TOKEN" https://example.com/api/v1/models?scope=all | jq -r '.data[].id' | sort -u | head -n 20`,

  JSON: `{"object":"list","data":[{"id":"order_01J8Z3","created_at":"2026-11-15T09:12:44.031Z","status":"shipped","customer":{"name":"Priya Raman","email":"priya@example.com","phone":"+61 2 5550 1234"},"items":[{"sku":"KB-104-US","quantity":1,"unit_price":"129.00"},{"sku":"USB-C-2M","quantity":3,"unit_price":"14.95"}],"total":"173.85","currency":"AUD","notes":null,"gift":false},{"id":"order_01J8Z4","created_at":"2026-11-15T09:13:02.518Z","status":"pending","customer":{"name":"Tom O'Neill","email":"tom.oneill@example.org","phone":null},"items":[],"total":"0.00","currency":"AUD","notes":"call first","gift":true}],"has_more":false,"next":null}`,

  'JSON, indented': JSON.stringify(
    {
      type: 'function',
      function: {
        name: 'search_flights',
        description: 'Finds flights between two airports on a day, cheapest first.',
        parameters: {
          type: 'object',
          properties: {
            origin: { type: 'string', description: 'IATA code of the airport of departure' },
            destination: { type: 'string', description: 'IATA code of the airport of arrival' },
            date: { type: 'string', format: 'date' },
            passengers: { type: 'integer', minimum: 1, maximum: 9, default: 1 },
          },
          required: ['origin', 'destination', 'date'],
          additionalProperties: false,
        },
      },
    },
    null,
    4,
  ),

  Markdown: `# Release notes

## 2.4.0 — 15 November 2026

- **New:** \`--dry-run\` shows what *would* be deleted ([#412](https://github.com/example/tool/issues/412)).
- **Fixed:** a crash on empty input; wrong totals after a leap second.
- Faster start: 310 ms → 95 ms on a cold cache.

| Option | Default | Meaning |
|---|---|---|
| \`retries\` | 3 | how often a failed call is tried again |
| \`timeout_ms\` | 30000 | how long one call may take |

> **Note**: the old \`--force\` flag is gone. Use \`--yes\` instead.

1. Back up your data.
2. Run \`tool migrate\`.
3. Check the log for lines with \`WARN\`.`,

  'log lines': `2026-11-15T09:12:44.031Z INFO  [http-7] request_id=01hzx9m2kq3v7 method=POST path=/api/v1/chat/completions status=200 duration_ms=1843 bytes=20481
2026-11-15T09:12:44.117Z WARN  [pool-2] 10.0.14.7:9000 did not answer in 5000 ms, trying 10.0.14.8:9000 (attempt 2 of 3)
2026-11-15T09:12:45.902Z ERROR [db] SQLSTATE[40001]: could not serialize access due to concurrent update at 0x7f3a9c1be4d0
Traceback (most recent call last): File "/srv/app/worker.py", line 218, in handle
192.168.1.20 - - [15/Nov/2026:20:12:44 +1100] "GET /static/app.3f9a1c.js HTTP/1.1" 304 0 "-" "Mozilla/5.0 (X11; Linux x86_64; rv:131.0)"`,

  German: `Ein Wehr hält den Fluss nicht auf, es bestimmt nur, wie schnell das Wasser weiterfließen darf. Dahinter steigt der Pegel ein wenig, die Strömung beruhigt sich, und was zu viel ist, wartet geduldig auf seine Reihe. Die Müller bauten solche Querbauwerke, um ihre Räder gleichmäßig anzutreiben; heute regeln Wasserkraftwerke und Schifffahrtsbehörden damit die Durchflussmengen. Wer früh am Morgen an der Staustufe vorbeigeht, hört schon von Weitem ein gleichförmiges Rauschen, das sich über Jahrzehnte kaum verändert hat. Sehr geehrte Damen und Herren, hiermit kündige ich meine Haftpflichtversicherung fristgerecht zum nächstmöglichen Zeitpunkt und bitte um eine schriftliche Bestätigung.`,

  'French and Spanish': `Un barrage n'arrête pas la rivière : il décide seulement à quelle vitesse l'eau peut continuer. Derrière lui, le niveau monte un peu, le courant s'apaise et attend son tour. « On ne discute pas avec elle », m'a dit l'éclusier en s'appuyant sur la poutre. Pourriez-vous m'expliquer, étape par étape, comment résilier mon abonnement avant l'échéance ?
Una presa no detiene el río; sólo decide a qué velocidad puede seguir el agua. Detrás de ella el nivel sube un poco, la corriente se calma y espera su turno. ¿Podrías resumirme este artículo en tres párrafos y señalar los argumentos más débiles? Mañana tengo que presentárselo a mi jefa y todavía no he empezado.`,

  'Vietnamese and Polish': `Một con đập thấp không ngăn được dòng sông, nó chỉ quyết định nước được chảy tiếp nhanh đến mức nào. Phía sau đập, mực nước dâng lên một chút, dòng chảy chậm lại và kiên nhẫn chờ đến lượt mình. Bạn có thể giải thích giúp tôi đoạn văn này bằng những từ đơn giản hơn không?
Jaz nie zatrzymuje rzeki, tylko decyduje, jak szybko woda może płynąć dalej. Za nim poziom nieco się podnosi, nurt się uspokaja i cierpliwie czeka na swoją kolej. Czy mógłbyś wyjaśnić mi krok po kroku, jak złożyć reklamację w sklepie internetowym i jakie dokumenty powinienem dołączyć?`,

  Russian: `Плотина не останавливает реку, она лишь решает, как быстро вода может течь дальше. За ней уровень немного поднимается, течение становится спокойным и терпеливо ждёт своей очереди. Мельники строили запруды, чтобы колёса вращались равномерно, а рыбаки — чтобы собирать угрей. Подскажите, пожалуйста, как правильно составить претензию в интернет-магазин, если товар доставили с опозданием на две недели и упаковка была повреждена?`,

  'Greek and Hebrew': `Το φράγμα δεν σταματά το ποτάμι, απλώς αποφασίζει πόσο γρήγορα μπορεί να συνεχίσει το νερό. Πίσω του η στάθμη ανεβαίνει λίγο, το ρεύμα ηρεμεί και περιμένει υπομονετικά τη σειρά του. Μπορείς να μου εξηγήσεις με απλά λόγια πώς λειτουργεί;
הסכר אינו עוצר את הנהר, הוא רק קובע באיזו מהירות המים רשאים להמשיך. מאחוריו המפלס עולה מעט, הזרם נרגע וממתין בסבלנות לתורו. האם תוכל להסביר לי במילים פשוטות איך זה עובד, ולתת דוגמה מחיי היומיום?`,

  Arabic: `السدّ المنخفض لا يوقف النهر، بل يقرّر فقط كم يمكن للماء أن يسرع في جريانه. خلفه يرتفع المنسوب قليلاً، ويهدأ التيار وينتظر دوره بصبر. بنى الطحّانون السدود كي تدور عجلاتهم بانتظام، وبناها الصيادون ليجمعوا الأسماك. هل يمكنك أن تشرح لي خطوة بخطوة كيف أقدّم شكوى إلى متجر إلكتروني تأخّر في توصيل طلبي أسبوعين كاملين؟`,

  Hindi: `बाँध नदी को रोकता नहीं, वह केवल यह तय करता है कि पानी कितनी तेज़ी से आगे जा सकता है। उसके पीछे जलस्तर थोड़ा ऊपर उठता है, धारा शांत हो जाती है और धैर्य से अपनी बारी की प्रतीक्षा करती है। पहले चक्की वाले इसे इसलिए बनाते थे कि पहिए एक समान गति से घूमें। क्या आप मुझे सरल शब्दों में समझा सकते हैं कि ऑनलाइन दुकान में शिकायत कैसे दर्ज की जाती है और कौन से काग़ज़ात लगाने होते हैं?`,

  'Thai and Tamil': `ฝายไม่ได้กั้นแม่น้ำไว้ มันเพียงกำหนดว่าน้ำจะไหลต่อไปได้เร็วแค่ไหน ด้านหลังฝายระดับน้ำจะสูงขึ้นเล็กน้อย กระแสน้ำสงบลงและรออย่างอดทน ช่วยอธิบายเป็นคำง่าย ๆ ได้ไหมว่ามันทำงานอย่างไร
அணை ஆற்றை நிறுத்துவதில்லை; தண்ணீர் எவ்வளவு வேகமாகச் செல்லலாம் என்பதை மட்டுமே அது தீர்மானிக்கிறது. அதன் பின்னால் நீர்மட்டம் சற்று உயர்கிறது, நீரோட்டம் அமைதியாகித் தன் முறைக்காகக் காத்திருக்கிறது.`,

  Chinese: `堰并不拦住河流，它只决定水能以多快的速度继续往前。堰后的水位略微升高，水流变得缓慢而耐心，等待轮到自己落下。从前磨坊主修堰，是为了让水车转得均匀；渔夫修堰，是为了拦住鳗鱼；城镇修堰，是为了让码头在八月不至于干涸。请帮我把下面这封邮件总结成两句话，并用礼貌的语气写一份回复。另外，我下个月要带两个孩子去云南旅行五天，每天开车不超过三个小时，能不能给我一个详细的行程安排？`,

  Japanese: `堰は川を止めるものではなく、水がどれだけの速さで先へ進めるかを決めるだけのものです。その後ろでは水位が少し上がり、流れは穏やかになって、自分の番を辛抱強く待ちます。昔の粉屋は水車を安定して回すために堰を築き、漁師はウナギを集めるために築きました。次のメールを二文で要約し、丁寧な返信の案を書いてください。また、来月子ども二人と北海道へ五日間の旅行に行くので、一日の運転が三時間以内の旅程を考えてもらえますか。`,

  Korean: `보는 강을 막지 않습니다. 물이 얼마나 빨리 흘러갈 수 있는지를 정할 뿐입니다. 그 뒤에서는 수위가 조금 올라가고 물살은 느려져 제 차례를 참을성 있게 기다립니다. 다음 이메일을 두 문장으로 요약하고 공손한 답장을 써 주세요. 그리고 다음 달에 아이 둘과 함께 제주도로 닷새 동안 여행을 가는데, 하루 운전 시간이 세 시간을 넘지 않는 일정을 짜 줄 수 있나요?`,

  emoji: `😀😂🤣😊😍🥰😘😜🤔🙄😴🤯🥳😎 party at 8 🎉🎊🍕🍻 see u there!!! 👍👍🏽👩‍👩‍👧‍👦🏳️‍🌈 🇦🇺🇯🇵🇧🇷 ❤️🧡💛💚💙💜 ✈️➡️🏝️☀️🌊🐬🦘🐨 lol 😂😂😂 brb ⏰ ✅❌⚠️🔥🚀💯`,

  'mathematics and symbols': `∀ε>0 ∃δ>0: |x−a|<δ ⇒ |f(x)−f(a)|<ε. ∑ₙ₌₁^∞ 1/n² = π²/6 ≈ 1.6449; ∫₀^∞ e^(−x²) dx = √π/2. Let \\(A \\in \\mathbb{R}^{m \\times n}\\), \\(\\lambda_{\\max}(A^\\top A) = \\|A\\|_2^2\\). ℕ ⊂ ℤ ⊂ ℚ ⊂ ℝ ⊂ ℂ; x ∉ A ∪ B ⟺ x ∉ A ∧ x ∉ B. 25 °C ± 0.5 °C, 10 µm, 5 Ω, ½ · ⅓ ≠ ⅕ ← → ↔ ∞ § ¶ † ‡ • … — – “quotes” ‘too’ «ici» ©®™`,

  base64: made(900, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'),
  hexadecimal: made(900, '0123456789abcdef'),
  'UUIDs and keys': Array.from({ length: 16 }, (_, index) => {
    const hex = made(32, '0123456789abcdef', index + 1)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }).join('\n'),
  'random letters': made(900, 'abcdefghijklmnopqrstuvwxyz'),
  'random capitals': made(900, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'),
  digits: made(900, '0123456789'),
  'table of numbers': Array.from({ length: 30 }, (_, row) =>
    [row, made(5, '123456789', row), `${made(2, '123456789', row + 99)}.${made(3, '0123456789', row + 199)}`].join(','),
  ).join('\n'),
  punctuation: made(900, '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'),
  'one letter, repeated': 'a'.repeat(900),
  whitespace: Array.from({ length: 30 }, (_, row) => ' '.repeat(row) + '\t'.repeat(row % 5)).join('\n'),
  'control characters': made(300, '\u0000\u0001\u0007\u0008\u000b\u001b\u007f'),
  'rare scripts': `ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ᛫ᚠᛁᚱᚪ᛫ᚷᛖᚻᚹᛦᛚᚳᚢᛗ ᐃᓄᒃᑎᑐᑦ ᐊᒻᒪᓗ ᓄᓇᕗᑦ ሰላም ለዓለም ተስፋ ይሁን ကမ္ဘာကြီး မင်္ဂလာပါ ព្រះរាជាណាចក្រកម្ពុជា ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ 𒀭𒂗𒍪 𓀀𓁐𓂀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎𠜱𠝹𠱓`,
}

function made(length: number, alphabet: string, seed = 1): string {
  const random = seededRandom(seed)
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
}
