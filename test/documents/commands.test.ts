import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { ROOT } from '../deploy/files.ts'
import { Ae } from '../support/ae.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { commandsOf } from './blocks.ts'
import { DOCUMENTS } from './documents.ts'

const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> }

/** The test that executes the blocks of commands of a document, from top to bottom. Its `describe` has the name of the document. */
const BLOCKS: Readonly<Record<string, string>> = {
  'README.md': 'readme.test.ts',
  'deploy/README.md': 'operations.test.ts',
  'deploy/observability/README.md': 'servers.test.ts',
  'shared/client/README.md': 'client-readme.test.ts',
  'shared/client/examples/README.md': 'first-hour.test.ts',
  'shared/client-python/README.md': 'client-python-readme.test.ts',
  'shared/platform/api/guide.md': 'guide.test.ts',
  'test/conformance/README.md': 'servers.test.ts',
}

/** How a command in a text is executed: by the test that has these words, or not at all, for a reason. */
type How = { by: string; words: string } | { not: string }

const LONG = {
  not: 'it takes minutes to hours; its short form or its parts are tests, and its options are checked below',
}
/** A name is the program alone, which the text is about. */
const A_NAME = { not: 'it names a program, and no command with arguments' }

/** For the commands in the texts, the first row that fits. Those of `ae`, and the options of npm scripts, are checked below. */
const ROWS: readonly (readonly [commands: RegExp, how: How])[] = [
  [/^(npm test|npm run check|scripts\/test)$/, { not: 'it runs this test, or right before it' }],
  [/^scripts\/test [\w./<>-]+( --grep .*)?$/, { by: 'test/scripts/test.test.ts', words: 'passes arguments to mocha' }],
  [/^npm run (test:unit|test:for .*)$/, { by: 'test/scripts/test.test.ts', words: '--for' }],
  [/^npm run imports$/, { by: 'test/scripts/check-imports.test.ts', words: 'the import table' }],
  [
    /^npm run (mutate|soak|bench(:\w+)?|chaos:durability|console:attack|try:batch|try:budget|try:routing|try:waiting)\b/,
    LONG,
  ],
  [/^npm run console:pictures\b/, { not: 'it writes into the tree; its parts are those of the tests of the console' }],
  [/^npm run try:(keycloak|mcp|clients|tools|fronts)$/, { not: 'it fetches and runs programs of others, for minutes' }],
  [
    /^(pip|npm) install standardwebhooks$/,
    { by: 'test/documents/client-python-readme.test.ts', words: 'standardwebhooks' },
  ],
  [/^head$/, { not: 'it is the name of a parameter' }],
  [/^npm run (chaos|abuse|fuzz|security|simulate) -- .*(--full|--seeds|--seed|--bugs)/, LONG],
  [/^npm run chaos( -- --only P[\d,P]+)?$/, { by: 'test/chaos/chaos.test.ts', words: 'main.ts' }],
  [
    /^npm run security( -- --only P[\d,P]+)?( --short)?$/,
    { by: 'test/security/short-forms.test.ts', words: 'main.ts' },
  ],
  [/^npm run abuse$/, { by: 'test/abuse/abuse.test.ts', words: 'main.ts' }],
  [/^npm run fuzz$/, { by: 'test/fuzz/fuzz.test.ts', words: 'main.ts' }],
  [/^npm run simulate$/, { by: 'test/simulation/simulation.test.ts', words: 'main.ts' }],
  [/^npm install (ai@7|@assistant-ui\/)/, { by: 'test/documents/chat-pages.test.ts', words: 'useChat of ai 7' }],
  [/^npm run manifests$/, { by: 'test/deploy/helm.test.ts', words: 'scripts/render-manifests.ts' }],
  [/^npm run deploy:test\b/, { not: 'it installs and runs a Docker engine, for ten minutes' }],
  [/^npm ci$/, { by: 'test/scripts/start.test.ts', words: 'npm ci' }],
  [/^npm run deploy:test( -- --only kubernetes)?$/, LONG],
  [/^npm run manifests$/, { by: 'test/deploy/helm.test.ts', words: 'scripts/render-manifests.ts' }],
  [/^npm run release:pack$/, { by: 'test/scripts/release.test.ts', words: 'scripts/release/main.ts' }],
  [/^npm run doctor( -- --url)?$/, { by: 'test/scripts/doctor.test.ts', words: 'scripts/doctor/main.ts' }],
  [/^(scripts\/cluster|npm run cluster)$/, { by: 'test/documents/readme.test.ts', words: 'launch(' }],
  [/^(scripts\/start|npm start)$/, { by: 'test/documents/readme.test.ts', words: 'launch(' }],
  [/^[A-Z_]+=\S+ scripts\/start$/, { by: 'test/documents/guide.test.ts', words: 'scripts\\/start' }],
  [/^scripts\/(start|cluster) --help$/, { by: 'test/scripts/print-help.test.ts', words: "'--help'" }],
  [/^(scripts\/ae|npx ae)$/, { by: 'test/scripts/ae.test.ts', words: 'scripts/ae' }],
  [/^scripts\/build-console$/, { by: 'test/console/support/console.ts', words: 'scripts/build-console' }],
  [/^scripts\/rewrap-keys( --help)?$/, { by: 'test/scripts/rewrap-keys.test.ts', words: 'scripts/rewrap-keys' }],
  [/^ae serve( --open| --env-file \.env)?$/, { by: 'test/cli/commands/serve.test.ts', words: "'serve'" }],
  [/^deploy\/roll$/, { by: 'test/deploy/rolling.test.ts', words: 'deploy/roll' }],
  [/^docker compose up --detach --wait$/, { by: 'test/documents/operations.test.ts', words: "'up'" }],
  [/^kubectl kustomize$/, { by: 'test/deploy/kubernetes.ts', words: 'kustomize' }],
  [/^head -c 32 \/dev\/urandom \| base64$/, { by: 'test/documents/operations.test.ts', words: 'master-key' }],
  [/^promtool check metrics$/, { not: 'the machines of the tests have no Prometheus' }],
  [/^ae run "Write the release notes"$/, { not: 'it shows the answer of a real model' }],
  [/^docker inspect$|^(docker|kubectl) exec$|^(mongosh|kill -9|ae)$/, A_NAME],
]

const PROGRAM =
  /^(?:[A-Z_]+=\S+ )*(?:(?:npm|npx|ae|node|docker|kubectl|helm|pip|python3|curl|bash|sh|head|kill|promtool|mongosh)(?= |$)|scripts\/[\w-]+(?= |$)|deploy\/roll(?= |$))/

const isFolder = (command: string): boolean =>
  statSync(ROOT + command, { throwIfNoEntry: false })?.isDirectory() === true

type Said = { path: string; command: string }

/** The commands in the text of a document, and those behind a prompt. */
const said: readonly Said[] = DOCUMENTS.flatMap(({ path, text }) => {
  const prose = text.replaceAll(/^```[^]*?^```$/gm, '')
  const inText = [...prose.matchAll(/`([^`\n]+)`/g), ...text.matchAll(/^\$ (.*)$/gm)]
  return inText.flatMap(([, command = '']) => (PROGRAM.test(command) && !isFolder(command) ? [{ path, command }] : []))
})

const isOfAe = (command: string): boolean => /^ae (?!run "|serve)/.test(command)
/** The options, and the promises whose tests they choose. */
const optionsOf = (command: string): string[] => command.match(/(?<= )--?[a-z][\w-]*|\bP\d+/g) ?? []
const show = ({ path, command }: Said): string => `${path}: ${command}`

/** The texts of a script and of all that it imports below `test` and `scripts`: its help is one of them. */
function sourcesOf(file: string, seen = new Set<string>()): string {
  if (seen.has(file) || !/^(test|scripts)\//.test(file)) return ''
  seen.add(file)
  const text = readFileSync(ROOT + file, 'utf8')
  const imported = [...text.matchAll(/ from '(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path))
  return [text, ...imported.map((each) => sourcesOf(each, seen))].join('\n')
}

describe('the commands of the documents', () => {
  const home = useTempFolder()

  it('stand in blocks that a test executes from top to bottom', () => {
    const withBlocks = DOCUMENTS.filter(({ text }) => commandsOf(text).length > 0)
    expect(withBlocks.map(({ path }) => path)).to.deep.equal(Object.keys(BLOCKS).toSorted())
    for (const [path, test] of Object.entries(BLOCKS))
      expect(readFileSync(`${ROOT}test/documents/${test}`, 'utf8'), test).to.include(`'${path}'`)
  })

  it('or in a text, and are executed by a test, or named here with the reason why not', () => {
    const unknown = said.filter(({ command }) => !isOfAe(command) && !ROWS.some(([row]) => row.test(command)))
    expect(unknown.map(show)).to.deep.equal([])
    const unused = ROWS.filter(([row]) => !said.some(({ command }) => row.test(command)))
    expect(unused.map(([row]) => String(row))).to.deep.equal([])
    const wrong = ROWS.filter(([, how]) => 'by' in how && !readFileSync(ROOT + how.by, 'utf8').includes(how.words))
    expect(wrong.map(([row]) => String(row))).to.deep.equal([])
  })

  it('of npm name scripts of package.json, and options and promises that stand in the help of these', () => {
    const calls = said.flatMap(({ path, command }) => {
      const [, name, rest = ''] = /^npm run ([\w:-]+)(.*)$/.exec(command) ?? []
      return name === undefined ? [] : [{ path, command, name, options: optionsOf(rest) }]
    })
    for (const call of calls) expect(scripts, show(call)).to.have.property(call.name)
    const withOptions = calls.filter(({ name, options }) => options.length > 0 && scripts[name]?.startsWith('node '))
    for (const call of withOptions) {
      const texts = sourcesOf(scripts[call.name]?.split(' ')[1] ?? '')
      for (const option of call.options)
        expect(texts, show(call)).to.match(
          new RegExp(option.startsWith('P') ? `\\bid: '${option}'` : `(?<![\\w-])${option}\\b`),
        )
    }
  })

  it('of ae name commands and options that it has', async () => {
    const ae = new Ae('http://127.0.0.1:1/v1', home.path)
    for (const each of said.filter(({ command }) => isOfAe(command))) {
      const [name = ''] = /^ae(?: [a-z]+(?= |$))*/.exec(each.command) ?? []
      const { code, out } = await ae.run([...name.split(' ').slice(1), '--help'])
      expect(code, show(each)).to.equal(0)
      for (const option of optionsOf(each.command)) expect(out, show(each)).to.match(new RegExp(`${option}\\b`))
    }
  })

  it('name scripts and files that exist', () => {
    const missing = DOCUMENTS.flatMap(({ path, text }) =>
      [...text.matchAll(/`((?:scripts|test|shared|services|deploy)\/[\w./-]+)/g)]
        .map(([, named = '']) => named.replace(/\.$/, ''))
        .filter((named) => !/NAME|\/built$|^deploy\/secrets/.test(named)) // Of a reader's choice, or made by a command.
        .filter((named) => ![named, join(dirname(path), named)].some((each) => existsSync(ROOT + each)))
        .map((named) => `${path}: ${named}`),
    )
    expect(missing).to.deep.equal([])
  })

  it('of npm run mutate: each part of its patterns names a file', () => {
    const config = JSON.parse(readFileSync(`${ROOT}stryker.config.json`, 'utf8')) as Record<string, string[]>
    const patterns = [config['mutate'], config['testFiles']].flatMap((each) => each ?? []).flatMap(withoutBraces)
    expect(patterns.length).to.be.greaterThan(50)
    expect(patterns.filter((each) => globSync(each, { cwd: ROOT }).length === 0)).to.deep.equal([])
  })
})

/** `a{b,c}` as `ab` and `ac`. */
function withoutBraces(pattern: string): string[] {
  const [whole = '', parts] = /\{([^{}]*)\}/.exec(pattern) ?? []
  return parts === undefined
    ? [pattern]
    : parts.split(',').flatMap((each) => withoutBraces(pattern.replace(whole, each)))
}
