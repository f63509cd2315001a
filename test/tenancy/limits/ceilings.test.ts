import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createLog } from '../../../shared/kernel/log.ts'
import { ConfigError } from '../../../shared/platform/config/config.ts'
import { openCeilingFile } from '../../../shared/tenancy/limits/ceiling-file.ts'
import { parseCeilings } from '../../../shared/tenancy/limits/ceilings.ts'
import { NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const ACME = tenantId('acme')
const OTHER = tenantId('other')

const ceilingsIn = (content: unknown) => {
  const ceilings = parseCeilings(typeof content === 'string' ? content : JSON.stringify(content))
  if ('problems' in ceilings) throw new Error(ceilings.problems.join('\n'))
  return ceilings
}
const problemsIn = (content: unknown) => {
  const ceilings = parseCeilings(typeof content === 'string' ? content : JSON.stringify(content))
  return 'problems' in ceilings ? ceilings.problems : []
}

describe('the ceilings of TENANT_LIMITS', () => {
  it('hold for every tenant, and the entry of a tenant replaces what it names', () => {
    const ceilings = ceilingsIn({
      '*': { tokens_per_day: 100, usd_per_day: 0.5 },
      acme: { tokens_per_day: 200, usd_per_day: null, concurrent_runs: 3 },
    })
    expect(ceilings.of(OTHER)).to.deep.equal({ ...NO_LIMITS, tokens_per_day: 100, usd_per_day: 0.5 })
    expect(ceilings.of(ACME)).to.deep.equal({ ...NO_LIMITS, tokens_per_day: 200, concurrent_runs: 3 })
    expect(ceilingsIn({}).of(ACME)).to.deep.equal(NO_LIMITS)
  })

  it('name the weight of a tenant beside its limits; 1 without one', () => {
    const ceilings = ceilingsIn({ '*': { weight: 2 }, acme: { weight: 0.5 }, plain: { weight: null } })
    expect([ACME, OTHER, tenantId('plain')].map((tenant) => ceilings.weightOf(tenant))).to.deep.equal([0.5, 2, 1])
    expect(ceilings.of(ACME)).to.deep.equal(NO_LIMITS)
    expect(ceilingsIn({}).weightOf(ACME)).to.equal(1)
  })

  it('are accepted up to the largest ones', () => {
    const largest = { requests_per_minute: 1_000_000, tokens_per_day: 1_000_000_000_000, usd_per_day: 1_000_000_000 }
    expect(ceilingsIn({ acme: { ...largest, concurrent_runs: 1 } }).of(ACME)).to.include(largest)
  })

  for (const [what, content, problem] of [
    ['no JSON', '{', 'must be a JSON object'],
    ['a list', [], 'must be a JSON object'],
    ['a tenant that cannot be', { 'a b': {} }, 'names "a b"'],
    ['a number as an entry', { acme: 5 }, 'an object of limits for "acme"'],
    ['an unknown limit', { '*': { tokens: 5 } }, 'unknown limit "tokens" for "*"'],
    ['a limit like an inherited property', { '*': { constructor: 5 } }, 'unknown limit "constructor"'],
    ['no tokens at all', { '*': { tokens_per_day: 0 } }, 'whole number from 1 to 1000000000000'],
    ['more tokens than there may be', { '*': { tokens_per_day: 1_000_000_000_001 } }, 'whole number from 1'],
    ['no dollars', { '*': { usd_per_day: 0 } }, 'a number above 0'],
    ['a weight of nothing', { '*': { weight: 0 } }, 'a number from 0.1 to 100'],
    ['half a run', { '*': { concurrent_runs: 0.5 } }, 'whole number from 1'],
    ['too many dollars', { '*': { usd_per_day: 1e308 } }, 'a number above 0'],
    ['a text', { '*': { usd_per_day: '5' } }, 'a number above 0'],
  ] as const)
    it(`are refused with ${what}`, () => expect(problemsIn(content).join()).to.include(problem))

  it('are refused with the first 20 problems', () => {
    const limits = Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`limit_${i}`, 1]))
    expect(problemsIn({ '*': limits })).to.have.length(20)
  })

  it('are read again when the file changes; one that cannot be used changes nothing and is logged once', async () => {
    await using folder = await makeTempFolder()
    const file = join(folder.path, 'limits.json')
    const lines: string[] = []
    const log = createLog({ level: 'info', write: (line) => lines.push(line) })
    const refused = await openCeilingFile({ file, log }).catch((cause: unknown) => cause)
    expect(refused)
      .to.be.instanceOf(ConfigError)
      .with.property('message')
      .that.includes(`${file} cannot be read (ENOENT)`)
    await writeFile(file, '{"*": {"tokens_per_day": 1}}')
    const ceilings = await openCeilingFile({ file, log, everyMs: 5 })
    /** Waits for a reader that looks at its own file a tenth as often. */
    const readsOften = async () => {
      const other = join(folder.path, 'other.json')
      await writeFile(other, '{}')
      const slow = await openCeilingFile({ file: other, log: SILENT_LOG, everyMs: 50 })
      await writeFile(other, '{"*": {"tokens_per_day": 1}}')
      await until(() => slow.of(ACME).tokens_per_day === 1, { what: 'the slow reader to read' })
      slow.close()
    }
    const tokens = () => ceilings.of(ACME).tokens_per_day
    try {
      await writeFile(file, '{"*": {"tokens_per_day": 0}}')
      await until(() => lines.some((line) => line.includes('whole number')), { what: 'the change to be refused' })
      expect(tokens()).to.equal(1)
      await rm(file)
      await until(() => lines.some((line) => line.includes('ENOENT')), { what: 'the missing file to be logged' })
      expect(tokens()).to.equal(1)
      await readsOften()
      await writeFile(file, '{"acme": {"tokens_per_day": 2}}')
      await until(() => tokens() === 2, { what: 'the change to hold' })
      expect(JSON.parse(lines.at(-1) ?? '{}')).to.include({ file })
      expect(lines.filter((line) => line.includes('ENOENT'))).to.have.length(1)
      const logged = lines.length
      await readsOften()
      expect(lines, 'while nothing changes').to.have.length(logged)
    } finally {
      ceilings.close()
    }
    await readsOften() // A read may have been under way.
    await writeFile(file, '{}')
    await readsOften()
    expect(tokens(), 'after the end').to.equal(2)
  })
})
