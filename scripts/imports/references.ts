import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Tree } from './read-tree.ts'
import type { Violation } from './violation.ts'

type Text = readonly [file: string, text: string]

/** Where the decisions are, from the project's folder. The second is the specification that the first is a copy of. */
const COPY = 'shared/api/decisions.md'
const SPECIFICATION = '../shared/spec/decisions.md'

/** Text files that the TypeScript project does not include. */
const DOCUMENTS = [
  '*.md',
  '{deploy,services,shared,scripts,test}/**/*.md',
  'scripts/*',
  'scripts/**/*.sh',
  'services/**/*.js',
]

/** A decision (`D4.2`), a section of them (`D4`) or a range. */
const DECISION = /\bD(\d+)(?:\.(\d+)(?:[-–](?:D(\d+)\.)?(\d+))?)?\b/g

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
  return [
    ...checkDecisions(texts, root),
    ...checkCopy(root),
    ...texts.flatMap(([file, text]) => findOutside(file, text)),
  ]
}

function readDocuments(root: string): Text[] {
  return globSync(DOCUMENTS, { cwd: root })
    .filter((file) => file !== COPY && !file.endsWith('.ts'))
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

function checkDecisions(texts: readonly Text[], root: string): Violation[] {
  const decisions = texts.some(([, text]) => text.match(DECISION)) ? readDecisions(join(root, COPY)) : new Set<string>()
  return texts.flatMap(([file, text]) =>
    eachLine(text).flatMap(([lineText, line]) =>
      [...lineText.matchAll(DECISION)]
        .flatMap(namedDecisions)
        .filter((name) => !decisions.has(name))
        .map((name) => ({ file, line, rule: `${name} is not in ${COPY}` })),
    ),
  )
}

/** The decisions of a match: one, or both ends of a range such as `D4.2–4` or `D4.2–D4.4`. */
function namedDecisions([, section, item, endSection, endItem]: RegExpExecArray): string[] {
  const start = item === undefined ? `D${section}` : `D${section}.${item}`
  return endItem === undefined ? [start] : [start, `D${endSection ?? section}.${endItem}`]
}

/** The numbers of all sections (`## D4 Runs`) and of their numbered items (`2. …`, with or without indentation). */
function readDecisions(path: string): Set<string> {
  const names = new Set<string>()
  let section = ''
  for (const [text] of eachLine(readText(path, '')[0]?.[1] ?? '')) {
    section = /^## (D\d+)\b/.exec(text)?.[1] ?? section
    const item = /^(\d+)\. /.exec(text)?.[1]
    if (section) names.add(item === undefined ? section : `${section}.${item}`)
  }
  return names
}

/** Where the specification is beside the project, as it is in CI, the copy has to be the same. */
function checkCopy(root: string): Violation[] {
  const [specification] = readText(join(root, SPECIFICATION), '')
  const [copy] = readText(join(root, COPY), '')
  if (specification === undefined || copy?.[1] === specification[1]) return []
  return [{ file: COPY, line: 1, rule: `differs from ${SPECIFICATION}: run \`cp ${SPECIFICATION} ${COPY}\`` }]
}

function findOutside(file: string, text: string): Violation[] {
  return eachLine(text).flatMap(([lineText, line]) => {
    const found = OUTSIDE.map((pattern) => pattern.exec(lineText)?.[0]).find((match) => match !== undefined)
    return found === undefined
      ? []
      : [{ file, line, rule: `"${found}" refers to a document outside the project: write out what it says` }]
  })
}

const eachLine = (text: string) => text.split('\n').map((lineText, i) => [lineText, i + 1] as const)
