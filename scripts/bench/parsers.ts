import { parseArgs } from 'node:util'
import { plain } from '../../services/cli/text/plain.ts'
import { TextFlow } from '../../services/cli/text/text-flow.ts'
import { cut } from '../../services/cli/text/width.ts'
import { diffLines } from '../../services/console/base/line-diff.ts'
import { rawOf, readInput } from '../../services/console/pages/flows/run/input-form.ts'
import { specOf } from '../../services/console/pages/flows/run/input-spec.ts'
import { GrowingText } from '../../services/console/parts/markdown/growing-text.ts'
import { readMarkdown } from '../../services/console/parts/markdown/read-markdown.ts'
import { readable, showControls, showJson } from '../../shared/reading/hidden.ts'
import { placesIn, syntaxErrorAt } from '../../shared/reading/json-places.ts'
import { readCall } from '../../shared/reading/read-call.ts'

const HELP = `Times what reads texts of models, tools and tenants for the console and the command line.

  npm run bench:parsers                   the slowest text of each parser, by size
  npm run bench:parsers -- --fuzz 2000    also so many random texts of 60,000 characters each
  npm run bench:parsers -- --seed 7       the same random texts again

A page answers its reader within 100 ms: a longer time of one reading ends the run with code 1.`

const MOST_MS = 100
const SIZES = [1_000, 12_000, 60_000] as const

type Parser = { name: string; read(text: string): unknown }

const PARSERS: readonly Parser[] = [
  { name: 'Markdown', read: readMarkdown },
  { name: 'Markdown, last step of growing', read: (text) => new GrowingText().sections(text) },
  { name: 'diff', read: (text) => diffLines(text, [...text.split('\n')].toReversed().join('\n')) },
  { name: 'JSON, place of a value', read: (text) => placesIn(`{"a":[${text}`)('/a/0') },
  { name: 'JSON, place of a mistake', read: syntaxErrorAt },
  {
    name: 'JSON of a long name',
    read: (text) =>
      placesIn(`{"${text.replaceAll(/["\\\n]/g, 'x').slice(0, 30_000)}":[${'1,'.repeat(text.length / 4)}1]}`)('/x'),
  },
  { name: 'form of a schema', read: readForm },
  { name: 'hidden characters, shown', read: showControls },
  { name: 'hidden characters, in what is read', read: readable },
  { name: 'hidden characters, in JSON', read: (text) => showJson(text) },
  { name: 'a call that waits', read: (text) => readCall({ input: { text } }) },
  { name: 'terminal, plain text', read: plain },
  { name: 'terminal, wrapped', read: (text) => new TextFlow(() => 80).write(plain(text)) },
  { name: 'terminal, one line', read: (text) => cut(plain(text), 80) },
]

const PARTS = [
  ...[
    '*a_',
    '_a*',
    '__a*',
    '**a_',
    '~a*',
    '*a[',
    '[*a_',
    '(*a_',
    '[a](',
    '![a](',
    '[a](<',
    '[a](b "',
    '[a][',
    '[',
    '![',
    '***a',
  ],
  ...[
    '`` ` ',
    '`',
    '<',
    '<a ',
    '&',
    '\\',
    'http://',
    'https://a.b/(',
    '|',
    '-|-\n',
    '|a|\n|-|\n',
    '> ',
    '- - ',
    '>- ',
    '* a\n',
    '1) a\n',
  ],
  ...[
    '- a\n  ',
    '\n\n',
    'a\n\n',
    'a\n=\n',
    '```\n',
    '[a]: b\n',
    '[a]: <',
    '-\n',
    '\t',
    'a ',
    '*',
    '_',
    'a',
    '\n',
    '\r',
    '+a\n-b\n',
  ],
  ...[
    '[',
    '{"a":',
    '{"a":1,',
    '"',
    '"\\u0041',
    '1,',
    '[],',
    '\u001b[31m',
    '\u202e',
    '\u200b',
    '\u{e0061}',
    '𝔞',
    'é',
    '字',
    '👩‍👩‍👧',
    'e\u0301',
    '\uf900',
    '\\u202e',
  ],
]

/** A schema whose names, choices and depth come from the text. */
function readForm(text: string): unknown {
  const names = text.match(/[\s\S]{1,20}/g) ?? []
  const properties = Object.fromEntries(
    names.map((name, i) => [`${i} ${name}`, { type: 'string', enum: [name, text.slice(0, 99)] }]),
  )
  let schema: object = { type: 'object', properties }
  for (let depth = 0; depth < 40; depth++)
    schema = { type: 'object', properties: { a: schema, [text.slice(0, 9)]: {} } }
  return [schema, { type: 'object', properties, pattern: text }].map((each) => {
    const spec = specOf(each)
    return readInput(spec, rawOf(spec))
  })
}

function run(fuzzed: number, seed: number): void {
  for (const { read } of PARSERS) for (const part of PARTS) read(part.repeat(200)) // Compiled before it is measured.
  const rows = PARSERS.map((parser) => ({
    parser: parser.name,
    ...Object.fromEntries(
      SIZES.map((size) => [
        `${size}`,
        slowest(
          parser,
          PARTS.map((part) => sized(part, size)),
        ),
      ]),
    ),
    ...(fuzzed > 0 && { fuzzed: slowest(parser, randomTexts(fuzzed, seed)) }),
  }))
  console.table(rows)
  const isSlow = rows.some((row) => Object.values(row).some((cell) => Number.parseFloat(cell) > MOST_MS))
  if (isSlow) process.exitCode = 1
}

const sized = (part: string, size: number) => part.repeat(Math.ceil(size / part.length)).slice(0, size)

/** `12 ms *a_`: the time of the slowest text, and how it begins. A text is timed again when it is slow: other programs use the CPU, too. */
function slowest({ read }: Parser, texts: Iterable<string>): string {
  let found = { ms: 0, text: '' }
  for (const text of texts) {
    let ms = time(read, text)
    if (ms > found.ms) ms = Math.min(ms, time(read, text), time(read, text))
    if (ms > found.ms) found = { ms, text }
  }
  return `${found.ms.toFixed(1)} ms ${JSON.stringify(found.text.slice(0, 8))}`
}

function time(read: Parser['read'], text: string): number {
  const start = performance.now()
  read(text)
  return performance.now() - start
}

/** Texts of a few parts each, which repeat, follow each other or are mixed. */
function* randomTexts(count: number, seed: number): Generator<string> {
  const next = randomOf(seed)
  const pick = () => PARTS[next() % PARTS.length] ?? ''
  for (let i = 0; i < count; i++) {
    const parts = Array.from({ length: 1 + (next() % 5) }, pick)
    const isMixed = next() % 2 === 0
    const text = isMixed
      ? sized(parts.join(''), 60_000)
      : parts.map((part) => sized(part, 60_000 / parts.length)).join('')
    yield text.slice(0, 60_000)
  }
}

/** A generator of numbers (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

const { values } = parseArgs({
  options: {
    fuzz: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean' },
  },
})
if (values.help) console.log(HELP)
else run(Number(values.fuzz), Number(values.seed))
