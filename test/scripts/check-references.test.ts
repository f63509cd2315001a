import { expect } from 'chai'
import { check } from './check-tree.ts'

const DECISIONS =
  'Text.\n\n## D1 Running it\n\n1. One.\n2. Two, long:\n   1. not an item\n\n## D4 Runs\n\n12. Twelve.\n'
const API = 'shared/platform/api/api.md'
const COPY = 'shared/platform/api/decisions.md'
const SPECIFICATION = '../shared/spec/decisions.md'
/** Keeps these test texts from being references of this file. */
const D = 'D'

describe('the check of references', () => {
  it('resolves decisions, sections and ranges of decisions in code, tests, scripts and documents', async () => {
    const found = await check({
      [COPY]: DECISIONS,
      'shared/kernel/a.ts': `// ${D}1.2, ${D}4.12.\n`,
      'test/a.test.ts': `it('${D}4: a rule', () => '${D}1.1–2')\n`,
      'scripts/start': `# ${D}1\n`,
      'README.md': `See ${D}1.1-${D}4.12.\n`,
    })
    expect(found).to.deep.equal([])
  })

  for (const [what, text, names] of [
    ['a decision whose section has no such item', `${D}4.2`, ['4.2']],
    ['an item of the section before', `${D}4.1`, ['4.1']],
    ['a section that does not exist', `${D}6`, ['6']],
    ['the end of a range within a section', `${D}1.1–3`, ['1.3']],
    ['the end of a range over sections', `${D}1.2–${D}4.13`, ['4.13']],
    ['both ends of a range', `${D}1.3-4`, ['1.3', '1.4']],
  ] as const)
    it(`reports ${what}, wherever it is cited`, async () => {
      const files = ['README.md', 'scripts/start', 'shared/cluster/README.md', 'shared/kernel/a.ts', 'test/a.test.ts']
      const texts = files.map((file) => [file, `\n// ${text}\n`] as const)
      expect(await check({ [COPY]: DECISIONS, ...Object.fromEntries(texts) })).to.have.members(
        files.flatMap((file) => names.map((name) => `${file}:2 ${D}${name} is not in ${COPY}`)),
      )
    })

  it('reports every decision when there is no copy', async () => {
    expect(await check({ 'shared/kernel/a.ts': `// ${D}1.1` })).to.deep.equal([
      `shared/kernel/a.ts:1 ${D}1.1 is not in ${COPY}`,
    ])
  })

  it('takes no hexadecimal number or longer name for a decision', async () => {
    expect(await check({ 'shared/kernel/a.ts': `const ${D}1x = '0${D}4 A${D}9 ${D}_4'\n${D}1x` })).to.deep.equal([])
  })

  const LETTERED = `## ${D}4 Runs\n\n5. (a) One rule.\n   (b) Another.\n   (c) The names:\n\n| name | default |\n|---|---|\n| HOST, PORT | - |\n`

  it('resolves lettered rules, ranges of them and the settings of a table', async () => {
    const texts = [`${D}4.5b`, `${D}4.5a–c`, `${D}4.5 PORT: a title`, `HOST (${D}4.5)`]
    expect(
      await check({ [COPY]: LETTERED, 'shared/kernel/a.ts': texts.map((text) => `// ${text}\n`).join('') }),
    ).to.deep.equal([])
  })

  for (const [text, problem] of [
    [`${D}4.5d`, `${D}4.5d is not in ${COPY}`],
    [`${D}4.5a–e`, `${D}4.5e is not in ${COPY}`],
    [`${D}4.5`, `${D}4.5 has several rules: cite ${D}4.5a or another one`],
    [`${D}4.5 TENANTS`, `${D}4.5 has several rules: cite ${D}4.5a or another one`],
  ] as const)
    it(`reports "${text.replace(D, '')}" where the decision has the rules a to c`, async () => {
      expect(await check({ [COPY]: LETTERED, 'shared/kernel/a.ts': `// ${text}` })).to.deep.equal([
        `shared/kernel/a.ts:1 ${problem}`,
      ])
    })

  const API_TEXT = '# API\n\n## What it does\n\n1. Runs.\n2. Lists.\n\n## Limits (all)\n\nOf a body: "x".\n'

  it('resolves sections of the specification by heading or words, and their numbered items', async () => {
    const cited = [
      'api%.md Limits',
      'api%.md "What it does" 2',
      'api%.md "Of a body"',
      'api%.md What it does 1',
      'api%.md',
    ]
    const text = cited.map((each) => `// ${each.replace('%', '')}\n`).join('')
    expect(await check({ [API]: API_TEXT, 'shared/kernel/a.ts': text })).to.deep.equal([])
  })

  for (const [text, problem] of [
    ['api%.md "What it does" 3', 'What it does 3 is not in shared/platform/api/api.md'],
    ['api%.md Sessions', 'Sessions is not in shared/platform/api/api.md'],
    ['(api%.md)', 'the specification is cited without a section'],
  ] as const)
    it(`reports "${text.replace('%', '')}"`, async () => {
      const files = {
        [API]: API_TEXT,
        'shared/kernel/a.ts': `// ${text.replace('%', '')}`,
        'README.md': '(api%.md)'.replace('%', ''),
      }
      expect(await check(files)).to.deep.equal([`shared/kernel/a.ts:1 ${problem}`])
    })

  it('reports a copy that does not say what the specification beside the project says; letters, lines and more sections are ours', async () => {
    const specification = `## ${D}4 Runs\n\n5. One rule. Another.\n   The names:\n\n| name | default |\n|---|---|\n| HOST, PORT | - |\n`
    const files = { 'shared/kernel/a.ts': '', [COPY]: `${LETTERED}\n## ${D}5 Ours\n`, [SPECIFICATION]: specification }
    expect(await check(files)).to.deep.equal([])
    const other = specification.replace('One rule', 'A rule')
    const problem = `${COPY}:1 does not say what ${SPECIFICATION} says: compare them word by word`
    expect(await check({ ...files, [SPECIFICATION]: other })).to.deep.equal([problem])
    expect(await check({ 'shared/kernel/a.ts': '', [SPECIFICATION]: specification })).to.deep.equal([problem])
    expect(await check({ 'shared/kernel/a.ts': '', [API]: 'old', '../shared/spec/api.md': 'new' })).to.have.length(1)
  })

  // The sign % keeps these texts from being references of this file.
  for (const reference of ['style%.md', 'rule% 12', 'WK% row', 'chapter %\u00a74'].map((text) => text.replace('%', '')))
    it(`reports a reference to "${reference}", which is outside the project`, async () => {
      const [found, ...more] = await check({ 'shared/kernel/a.ts': `\n// See ${reference}.` })
      expect(found).to.match(/^shared\/kernel\/a\.ts:2 ".+" refers to a document outside the project/)
      expect(more).to.deep.equal([])
    })
})
