import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Tree } from './read-tree.ts'
import type { Violation } from './violation.ts'

type Text = readonly [file: string, text: string]

/** The project's copies of the specification and of the decisions, from the project's folder, and where both come from. */
const API = 'shared/platform/api/api.md'
const DECISIONS = 'shared/platform/api/decisions.md'
const SPECIFICATIONS = '../shared/spec'

/** Text files that the TypeScript project does not include. */
const DOCUMENTS = [
  '*.md',
  '{deploy,services,shared,scripts,test}/**/*.md',
  'scripts/*',
  'scripts/**/*.sh',
  'services/**/*.js',
]

/** The built console, which has the code of libraries in it. */
const BUILT = 'services/console/built/'

/** A decision (`D4.2`), one of its lettered rules (`D4.5c`), a section of them (`D4`), or a range of decisions or of rules. */
const DECISION = /\bD(\d+)(?:\.(\d+)([a-z])?(?:[-–](?:([a-z])\b|(?:D(\d+)\.)?(\d+)))?)?\b/g

/** A section of api.md, by its heading or by words in it, and a numbered item of it: `api.md Limits`, `api.md "Named flows" 6`. */
const SECTION = /\bapi\.md (?:"([^"]+)"|([A-Z][A-Za-z-]*(?: [a-z-]+)*))(?: (\d+))?/g
/** A mention of api.md that names no section. In documents it means the file. */
const WHOLE_API = /(?<!\/)\bapi\.md\b(?! (?:"|[A-Z])|$)/

/** Names of documents, and labels from them, that a reader of the project cannot look up. */
const OUTSIDE = [
  /\b(reliability|design|style|performance|libraries)\.md\b/,
  /\brules? \d+\b/,
  /\b(WK|R) rows?\b/,
  /\u00a7/,
]

/** Checks that what code, tests and documents refer to can be found in the project. */
export function checkReferences(tree: Tree, root: string): Violation[] {
  const texts = [...[...tree].map(([file, { text }]) => [file, text] as const), ...readDocuments(root)]
  const [api, decisions] = [API, DECISIONS].map((file) => readText(join(root, file), file)[0]?.[1] ?? '')
  return [
    ...checkEach(texts, unknownDecisions(readDecisions(decisions ?? ''))),
    ...checkEach(texts, unknownSections(api ?? '')),
    ...checkCopies(root),
    ...checkEach(texts, findOutside),
  ]
}

type Check = (line: string, file: string) => string[]

const checkEach = (texts: readonly Text[], check: Check): Violation[] =>
  texts.flatMap(([file, text]) =>
    eachLine(text).flatMap(([lineText, line]) => check(lineText, file).map((rule) => ({ file, line, rule }))),
  )

function readDocuments(root: string): Text[] {
  return globSync(DOCUMENTS, { cwd: root })
    .filter((file) => file !== DECISIONS && file !== API && !file.endsWith('.ts') && !file.startsWith(BUILT))
    .flatMap((file) => readText(join(root, file), file))
}

/** The text of a file, or nothing when it cannot be read. */
function readText(path: string, name: string): Text[] {
  try {
    return [[name, readFileSync(path, 'utf8')]]
  } catch {
    return [] // A folder, or a link to nothing.
  }
}

/** `names`: the sections, their items and the lettered rules of those (`D4`, `D4.2`, `D4.5c`). `settings`: the variables in their tables. */
type Decisions = { names: ReadonlySet<string>; settings: ReadonlySet<string> }

/** A citation of an item with lettered rules must name one of the rules, or a setting of the item's table. */
const unknownDecisions =
  ({ names, settings }: Decisions): Check =>
  (line) =>
    [...line.matchAll(DECISION)].flatMap(namedDecisions).flatMap((name) => {
      if (!names.has(name)) return [`${name} is not in ${DECISIONS}`]
      const isWhole = names.has(`${name}a`) && !(line.match(/\b[A-Z_]{4,}\b/g) ?? []).some((word) => settings.has(word))
      return isWhole ? [`${name} has several rules: cite ${name}a or another one`] : []
    })

/** The decisions of a match: one, or both ends of a range such as `D4.2–4`, `D4.2–D4.4` or `D4.5a–c`. */
function namedDecisions([, section, item, letter = '', endLetter, endSection, endItem]: RegExpExecArray): string[] {
  const start = item === undefined ? `D${section}` : `D${section}.${item}${letter}`
  if (endLetter !== undefined) return [start, `D${section}.${item}${endLetter}`]
  return endItem === undefined ? [start] : [start, `D${endSection ?? section}.${endItem}`]
}

/** Reads sections (`## D4 Runs`), their numbered items, the rules of an item (`(c) …`) and the settings of its table. */
function readDecisions(text: string): Decisions {
  const [names, settings] = [new Set<string>(), new Set<string>()]
  let [section, item] = ['', '']
  for (const [line] of eachLine(text)) {
    const heading = /^## (D\d+)\b/.exec(line)?.[1]
    if (heading !== undefined) [section, item] = [heading, '']
    if (section === '') continue
    item = /^(\d+)\. /.exec(line)?.[1] ?? item
    const letter = /^(?:\d+\.| ) +\(([a-z])\) /.exec(line)?.[1]
    names.add(item === '' ? section : `${section}.${item}`)
    if (letter !== undefined) names.add(`${section}.${item}${letter}`)
    for (const [setting] of /^\| ([A-Z_, ]+) \|/.exec(line)?.[1]?.matchAll(/[A-Z_]+/g) ?? []) settings.add(setting)
  }
  return { names, settings }
}

/** Code and tests name the section, which is a heading of api.md or stands in it. */
const unknownSections =
  (api: string): Check =>
  (line, file) => {
    const isCode = /^(services|shared|test)\/.*\.(ts|js|yaml)$/.test(file)
    const unknown = [...line.matchAll(SECTION)].flatMap(([, words, heading = '', item]) =>
      hasSection(api, words ?? heading, item) || (words !== undefined && item === undefined && api.includes(words))
        ? []
        : [`${words ?? heading}${item === undefined ? '' : ` ${item}`} is not in ${API}`],
    )
    return isCode && WHOLE_API.test(line) ? [...unknown, 'the specification is cited without a section'] : unknown
  }

/** Whether a heading of api.md begins with the words, or they with it, and has the numbered item. */
function hasSection(api: string, words: string, item: string | undefined): boolean {
  return api.split(/^#+ /m).some((section) => {
    const heading = section.slice(0, section.indexOf('\n')).replace(/ \(.*\)$/, '')
    const isNamed = heading.startsWith(words) || words.startsWith(`${heading} `)
    return isNamed && (item === undefined || section.includes(`\n${item}. `))
  })
}

/** Where the specification is beside the project, as it is in CI, the copies have to say the same. Only our decisions have letters, and more sections. */
function checkCopies(root: string): Violation[] {
  return [API, DECISIONS].flatMap((file) => {
    const specification = `${SPECIFICATIONS}/${basename(file)}`
    const [[, wanted] = [], [, copy] = []] = [specification, file].map(
      (path) => readText(join(root, path), path)[0] ?? [],
    )
    if (wanted === undefined || wordsOf(copy ?? '').startsWith(wordsOf(wanted))) return []
    return [{ file, line: 1, rule: `does not say what ${specification} says: compare them word by word` }]
  })
}

/** The text without its line breaks and letters of rules. */
const wordsOf = (text: string) => text.replace(/(^\d+\.|^) +\([a-z]\) /gm, '$1 ').replace(/\s+/g, ' ')

function findOutside(line: string): string[] {
  const found = OUTSIDE.map((pattern) => pattern.exec(line)?.[0]).find((match) => match !== undefined)
  return found === undefined ? [] : [`"${found}" refers to a document outside the project: write out what it says`]
}

const eachLine = (text: string) => text.split('\n').map((lineText, i) => [lineText, i + 1] as const)
