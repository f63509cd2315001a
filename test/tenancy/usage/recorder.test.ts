import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { BUCKETS, DIMENSIONS, type RunUsage, type UsageAddition } from '../../../shared/tenancy/usage/port.ts'
import { UsageRecorder } from '../../../shared/tenancy/usage/recorder.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const TENANT = tenantId('t_1')
/** An hour and a day of each dimension; without pairs there is nothing by `metadata`. */
const PLACES = BUCKETS.length * (DIMENSIONS.length - 1)
const USED: RunUsage = {
  ...{ kind: 'run', model: 'm', hasFailed: false, isInvalid: false },
  ...{ input_tokens: 10, cache_read_tokens: 0, cache_write_tokens: 0, output_tokens: 5, cost_usd: 0.5, ms: 1_000 },
}

type Taken = UsageAddition & { tenant: TenantId }

describe('the recorder of usage', () => {
  const opened: UsageRecorder[] = []
  afterEach(async () => {
    for (const recorder of opened.splice(0)) await recorder.close()
  })

  /** `answers` are those of the store, one after the other; then it takes everything. */
  function open({ answers = [] as ('away' | 'busy' | 'taken')[], everyMs = 60_000 } = {}) {
    const asked: Taken[] = []
    const taken: Taken[] = []
    const lines: string[] = []
    const clock = { now: new Date('2026-11-22T10:59:59.000Z') }
    const recorder = new UsageRecorder({
      store: {
        async add(tenant, addition) {
          asked.push({ tenant, ...addition })
          const answer = answers.shift() ?? 'taken'
          if (answer === 'away') throw new AppError('unavailable', 'the store is away')
          if (answer === 'taken') taken.push({ tenant, ...addition })
          return answer === 'taken'
        },
      },
      log: createLog({ level: 'error', write: (line) => lines.push(line) }),
      now: () => clock.now,
      everyMs,
    })
    opened.push(recorder)
    return { recorder, asked, taken, lines, clock }
  }
  const models = (taken: readonly Taken[], bucket: string) =>
    taken.filter((each) => each.by === 'model' && each.bucket === bucket)

  it('D42.5: counts a run for each pair of its metadata', async () => {
    const { recorder, taken } = open()
    recorder.add(TENANT, { ...USED, metadata: ['team=red', 'stage=a=b'] })
    recorder.add(TENANT, { ...USED, metadata: ['team=red'] })
    await recorder.close()
    const [hour] = taken.filter(({ by }) => by === 'metadata')
    expect([...(hour?.rows ?? [])].map(([key, { runs }]) => [key, runs])).to.deep.equal([
      ['team=red', 2],
      ['stage=a=b', 1],
    ])
  })

  it('D21e: counts a run for the combination of its values, each of which is cut where it is very long', async () => {
    const { recorder, taken } = open()
    recorder.add(TENANT, { ...USED, model: 'm'.repeat(300), customer: 'c-1' })
    await recorder.close()
    const keyOf = (by: string) => [...(taken.find((each) => each.by === by)?.rows.keys() ?? [])]
    const model = `${'m'.repeat(256)}…`
    expect(keyOf('model')).to.deep.equal([model])
    expect(keyOf('crossed')).to.deep.equal([JSON.stringify([model, 'run', '', 'c-1', ''])])
  })

  it('writes the sums of many runs at once, by hour and by day, in the hour in which each has ended', async () => {
    const { recorder, taken, clock } = open()
    for (let i = 0; i < 3; i++) recorder.add(TENANT, { ...USED, hasFailed: i === 0 })
    clock.now = new Date('2026-11-22T11:00:00.000Z')
    recorder.add(TENANT, { ...USED, model: undefined })
    await recorder.close()
    const [early, late] = models(taken, 'hour')
    expect(early).to.include({ tenant: TENANT, start: '2026-11-22T10:00:00.000Z' })
    expect(early?.rows.get('m')).to.include({
      runs: 3,
      failed: 1,
      invalid: 0,
      input_tokens: 30,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 15,
      cost_usd: 1.5,
    })
    expect(late).to.include({ start: '2026-11-22T11:00:00.000Z' })
    expect([...(late?.rows.keys() ?? [])], 'no model').to.deep.equal([''])
    const [day, ...more] = models(taken, 'day')
    expect(more).to.deep.equal([])
    expect(day).to.include({ start: '2026-11-22T00:00:00.000Z' })
    expect([...(day?.rows.keys() ?? [])]).to.deep.equal(['m', ''])
    expect(taken.find((each) => each.by === 'kind' && each.bucket === 'day')?.rows.get('run')).to.include({ runs: 4 })
  })

  it('keeps tenants apart', async () => {
    const { recorder, taken } = open()
    recorder.add(TENANT, USED)
    recorder.add(tenantId('t_2'), { ...USED, model: 'n' })
    await recorder.close()
    const shown = models(taken, 'day').map(({ tenant, rows }) => [tenant, [...rows.keys()]])
    expect(shown).to.deep.equal([
      [TENANT, ['m']],
      ['t_2', ['n']],
    ])
  })

  it('repeats what the store did not take under its number, and adds what came meanwhile under a later one', async () => {
    const { recorder, asked, taken } = open({ answers: ['away'], everyMs: 2 })
    recorder.add(TENANT, USED)
    await until(() => asked.length > 0, { what: 'the first try' })
    recorder.add(TENANT, USED)
    const first = asked[0]
    await until(() => models(taken, 'hour').length === 2, { what: 'both additions to be stored' })
    const [repeated, second] = models(taken, 'hour')
    expect(repeated).to.deep.equal(first).and.include({ by: 'model', bucket: 'hour' })
    expect(first?.rows.get('m')).to.include({ runs: 1 })
    expect(second?.rows.get('m')).to.include({ runs: 1 })
    expect(second?.process).to.equal(first?.process)
    expect(second?.number).to.be.greaterThan(Number(first?.number))
  })

  it('tries again, when it closes, what another process was faster with', async () => {
    const { recorder, taken, lines } = open({ answers: ['taken', 'busy'] })
    recorder.add(TENANT, USED)
    await recorder.close()
    expect(new Set(taken.map(({ number }) => number))).to.have.property('size', PLACES)
    expect(lines).to.deep.equal([])
  })

  it('closes while the store is away, and says what is lost', async () => {
    const { recorder, asked, lines } = open({ answers: Array(PLACES).fill('away') })
    recorder.add(TENANT, USED)
    await recorder.close()
    expect(asked).to.have.length(PLACES)
    expect(lines.join()).to.include('the usage of some runs is lost').and.include(`"places":${PLACES}`)
  })

  it('has nothing to write without runs', async () => {
    const { recorder, asked } = open()
    await recorder.close()
    expect(asked).to.deep.equal([])
  })
})
