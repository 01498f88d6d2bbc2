/** A small fixed set of questions for the default models, each with what a right answer contains. */

export interface ChatTask {
  readonly about: string
  readonly question: string
  readonly right: RegExp
}

export const chatTasks: readonly ChatTask[] = [
  { about: 'geography', question: 'What is the capital of France?', right: /\bParis\b/ },
  { about: 'geography', question: 'What is the capital of Australia?', right: /\bCanberra\b/ },
  { about: 'geography', question: 'On which continent is Egypt?', right: /\bAfrica\b/ },
  { about: 'science', question: 'At what temperature does water boil, in degrees Celsius?', right: /\b100\b/ },
  { about: 'science', question: 'Which planet is known as the Red Planet?', right: /\bMars\b/ },
  { about: 'arithmetic', question: 'What is 7 + 5? Answer with the number only.', right: /\b12\b/ },
  { about: 'arithmetic', question: 'What is 12 times 3? Answer with the number only.', right: /\b36\b/ },
  {
    about: 'extraction',
    question: 'Write only the e-mail address in this sentence: "Please write to anna@example.com by Friday."',
    right: /anna@example\.com/,
  },
  {
    about: 'JSON',
    question: 'Write a JSON object with the fields "name" and "age" for Anna, who is 30 years old.',
    right: /\{[^{}]*"name"\s*:\s*"Anna"[^{}]*"age"\s*:\s*"?30"?[^{}]*\}/,
  },
  {
    about: 'code',
    question: 'Write a Python function add(a, b) that returns the sum of a and b.',
    right: /def add\(a, b\):[\s\S]*return a \+ b/,
  },
  { about: 'translation', question: 'Translate "Good morning" into French.', right: /\bbonjour\b/i },
  {
    about: 'writing',
    question: 'Rewrite in the past tense: "She walks to school."',
    right: /She walked to school/,
  },
]

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
