import { expect } from 'chai'
import { check } from './check-tree.ts'

const DECISIONS =
  'Text.\n\n## D1 Running it\n\n1. One.\n2. Two, long:\n   1. not an item\n\n## D4 Runs\n\n12. Twelve.\n'
const COPY = 'shared/api/decisions.md'
const SPECIFICATION = '../shared/spec/decisions.md'
/** Keeps these test texts from being references of this file. */
const D = 'D'

describe('the check of references', () => {
  it('resolves decisions, sections and ranges of decisions in code, tests, scripts and documents', async () => {
    const found = await check({
      [COPY]: DECISIONS,
      'shared/a.ts': `// ${D}1.2, ${D}4.12.\n`,
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
    for (const file of ['shared/a.ts', 'test/a.test.ts', 'README.md', 'shared/broker/README.md', 'scripts/start'])
      it(`reports ${what} in ${file}`, async () => {
        const found = await check({ [COPY]: DECISIONS, [file]: `\n// ${text}\n`, 'shared/b.ts': '' })
        expect(found).to.deep.equal(names.map((name) => `${file}:2 ${D}${name} is not in ${COPY}`))
      })

  it('reports every decision when there is no copy', async () => {
    expect(await check({ 'shared/a.ts': `// ${D}1.1` })).to.deep.equal([`shared/a.ts:1 ${D}1.1 is not in ${COPY}`])
  })

  it('takes no hexadecimal number or longer name for a decision', async () => {
    expect(await check({ 'shared/a.ts': `const ${D}1x = '0${D}4 A${D}9 ${D}_4'\n${D}1x` })).to.deep.equal([])
  })

  it('reports a copy that differs from the specification beside the project, and how to update it', async () => {
    const files = { 'shared/a.ts': '', [COPY]: DECISIONS }
    expect(await check({ ...files, [SPECIFICATION]: DECISIONS })).to.deep.equal([])
    expect(await check({ ...files, [SPECIFICATION]: `${DECISIONS}13. New.\n` })).to.deep.equal([
      `${COPY}:1 differs from ${SPECIFICATION}: run \`cp ${SPECIFICATION} ${COPY}\``,
    ])
    expect(await check({ 'shared/a.ts': '', [SPECIFICATION]: DECISIONS })).to.have.length(1)
  })

  // The sign % keeps these texts from being references of this file.
  for (const reference of ['style%.md', 'rule% 12', 'WK% row', 'chapter %\u00a74'].map((text) => text.replace('%', '')))
    it(`reports a reference to "${reference}", which is outside the project`, async () => {
      const [found, ...more] = await check({ 'shared/a.ts': `\n// See ${reference}.` })
      expect(found).to.match(/^shared\/a\.ts:2 ".+" refers to a document outside the project/)
      expect(more).to.deep.equal([])
    })
})
