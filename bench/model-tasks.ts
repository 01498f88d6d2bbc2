import { isDeepStrictEqual } from 'node:util'

/** Fixed sets of questions for the default models, each with what a right answer contains. */

export interface ChatTask {
  readonly about: string
  readonly question: string
  right(answer: string): boolean
}

/** Twenty plain questions, as people ask them first. The chat model that is named first answers at least 17. */
export const chatTasks: readonly ChatTask[] = [
  { about: 'facts', question: 'What is the capital of France?', right: has(/\bParis\b/) },
  { about: 'facts', question: 'What is the capital of Australia?', right: has(/\bCanberra\b/) },
  { about: 'facts', question: 'On which continent is Egypt?', right: has(/\bAfrica\b/) },
  { about: 'facts', question: 'At what temperature does water boil, in degrees Celsius?', right: has(/\b100\b/) },
  { about: 'facts', question: 'Which planet is known as the Red Planet?', right: has(/\bMars\b/) },
  { about: 'facts', question: 'Who wrote "Romeo and Juliet"?', right: has(/\bShakespeare\b/) },
  { about: 'facts', question: 'What is the chemical symbol for gold?', right: has(/\bAu\b/) },
  { about: 'facts', question: 'How many days are there in a leap year?', right: has(/\b366\b/) },
  { about: 'arithmetic', question: 'What is 7 + 5? Answer with the number only.', right: has(/\b12\b/) },
  { about: 'arithmetic', question: 'What is 12 times 3? Answer with the number only.', right: has(/\b36\b/) },
  {
    about: 'arithmetic',
    question: 'I have 10 apples and give away 4. How many are left?',
    right: has(/\b(6|six)\b/i),
  },
  {
    about: 'extraction',
    question: 'Write only the e-mail address in this sentence: "Please write to anna@example.com by Friday."',
    right: has(/^[^a-z]*anna@example\.com[^a-z]*$/i),
  },
  {
    about: 'extraction',
    question: 'Which day is named in this sentence? "The meeting moved from the hall to room 4 on Thursday."',
    right: has(/\bThursday\b/),
  },
  {
    about: 'JSON',
    question: 'Write a JSON object with the fields "name" and "age" for Anna, who is 30 years old.',
    right: (answer) => isDeepStrictEqual(jsonIn(answer), { name: 'Anna', age: 30 }),
  },
  {
    about: 'JSON',
    question: 'Write the colours red, green and blue as a JSON array of strings.',
    right: (answer) => isDeepStrictEqual(jsonIn(answer), ['red', 'green', 'blue']),
  },
  {
    about: 'code',
    question: 'Write a Python function add(a, b) that returns the sum of a and b.',
    right: has(/def add\(a, b\):[\s\S]*return a \+ b/),
  },
  {
    about: 'code',
    question: 'Write a SQL query that selects all rows of the table users.',
    right: has(/select\s+\*\s+from\s+users\b/i),
  },
  { about: 'translation', question: 'Translate "Good morning" into French.', right: has(/\bbonjour\b/i) },
  {
    about: 'writing',
    question: 'Rewrite in the past tense: "She walks to school."',
    right: has(/She walked to school/),
  },
  { about: 'writing', question: 'Write a haiku about the sea.', right: isHaiku },
]

function has(words: RegExp): ChatTask['right'] {
  return (answer) => words.test(answer)
}

/** The JSON of an answer, which may be fenced or have a sentence before and after it. */
function jsonIn(answer: string): unknown {
  try {
    return JSON.parse(/[[{][^]*[\]}]/.exec(answer)?.[0] ?? '')
  } catch {
    return undefined
  }
}

/** Three short lines that differ. Syllables are not counted. */
function isHaiku(answer: string): boolean {
  const lines = answer.trim().split(/\s*\n\s*/)
  return new Set(lines).size === 3 && lines.length === 3 && lines.every((line) => line.length <= 60)
}

export interface SpeechTask {
  /** A file below test/models/clips. */
  readonly clip: string
  readonly task: 'transcriptions' | 'translations'
  readonly language: string
  /** What is said, without capitals and punctuation; for a translation, the words that it must contain. */
  readonly words: string
}

export const speechTasks: readonly SpeechTask[] = [
  {
    clip: 'jfk.mp3',
    task: 'transcriptions',
    language: 'en',
    words: 'and so my fellow americans ask not what your country can do for you ask what you can do for your country',
  },
  {
    clip: 'german.wav',
    task: 'transcriptions',
    language: 'de',
    words: 'guten morgen die kinder spielen im garten und die katze schläft im haus',
  },
  {
    clip: 'spanish.wav',
    task: 'transcriptions',
    language: 'es',
    words: 'el agua está muy fría mañana vamos a la playa',
  },
  {
    clip: 'german.wav',
    task: 'translations',
    language: 'de',
    words: 'good morning children play garden cat sleep house',
  },
  {
    clip: 'spanish.wav',
    task: 'translations',
    language: 'es',
    words: 'water very cold tomorrow beach',
  },
]
