import { expect } from 'chai'
import { openClusterStore, openStandaloneStore } from '../../../services/wiring/open-store.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { newTraceId } from '../../../shared/kernel/ids.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import type { Audit } from '../../../shared/tenancy/tenant-config/config.ts'
import type { DispatchSummary } from '../../../shared/work/flows/dispatch-log.ts'
import { newDispatch, rejected } from '../../../shared/work/flows/transitions.ts'
import { eventsOf, nextCall, REQUEST, recordOf, streamFlow, traceOf } from '../../support/flow-streams.ts'
import { answerOf, DEFINITION, GOOD, useFlows } from '../../support/flows.ts'
import { runIsForgotten } from '../../support/forgotten-run.ts'
import { inBothForms } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const DAY_MS = 86_400_000
/** Requests go to the gateways in turn, so that as many in a row reach all of them. */
const GATEWAYS = 2

inBothForms('audit of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form, { RUN_RESUME_SECS: '1' })
  let name = ''
  before(async () => {
    name = await bench.publish({ ...DEFINITION, tools: ['TodoWrite'] })
    bench.main.otherwise(() => GOOD)
  })

  const run = (headers: Record<string, string> = {}, body: object = {}) =>
    bench.call('POST', `/flows/${name}/run`, { ...REQUEST, ...body }, headers)

  const times = <T>(work: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: GATEWAYS }, work))

  const setAudit = async (audit: Partial<Audit>) => {
    const { status, body } = await bench.call('PUT', '/config/engine', { audit })
    expect(status).to.equal(200)
    expect(body).to.have.property('audit').that.includes(audit)
  }

  describe('api.md Flow execution record: payloads', () => {
    /** Waits until every gateway keeps payloads as it is told to (D8.5). */
    const storePayloads = async (isOn: boolean) => {
      await setAudit({ store_payloads: isOn })
      const isApplied = async () => {
        const records = await times(async () => recordOf(bench, traceOf(await run())))
        return records.every(({ input }) => (input !== null) === isOn)
      }
      await until(isApplied, { what: `payloads to be ${isOn ? '' : 'not '}kept` })
    }

    it('are not kept when store_payloads is off, and every client of the run gets its answer all the same', async () => {
      await storePayloads(false)
      const key = { 'idempotency-key': 'no-payloads' }
      const gate = Promise.withResolvers<void>()
      bench.main.answer([{ hold: gate.promise }, { text: GOOD }])
      const called = nextCall(bench.main)
      const stream = await streamFlow(bench, name, {}, key)
      await called
      const joined = run(key)
      gate.resolve()
      const frames = await stream.all()
      const { at: _at, ...result } = frames.at(-1)?.data ?? {}
      expect(result).to.deep.include({ verdict: 'ok', output: { answer: 'yes' } })
      expect(answerOf(await joined)).to.deep.equal(result)
      for (const late of await times(() => run(key))) expect(answerOf(late)).to.deep.equal(result)
      await runIsForgotten(bench, stream.runId)
      expect(await (await streamFlow(bench, name, {}, key)).all()).to.deep.equal(frames)

      const nothing = { input: null, output: null, raw_output: null }
      const record = await recordOf(bench, traceOf(stream.response))
      expect(record).to.deep.include({ ...nothing, status: 'ok', turns: 1 })
      const replay = await bench.product.stream(`/dispatches/${record.trace_id}/events`)
      const replayed = await replay.all()
      expect(eventsOf(replayed)).to.deep.equal(['started', 'result'])
      expect(replayed.at(-1)?.data).to.include({ verdict: 'ok', output: null })
      const refused = await run({}, { input: { other: 'x' } })
      expect(await recordOf(bench, traceOf(refused))).to.deep.include({ ...nothing, status: 'rejected' })
    })
  })

  describe('D8.1 retention_days', () => {
    /** Stores a record that is some days old, as it was stored then. */
    const store = async (days: number): Promise<string> => {
      const { dataDir } = bench.product
      const config = { ...loadConfig(bench.mongoEnv, 'standalone'), dataDir }
      const log = createLog({ level: 'error' })
      const stores = form === 'cluster' ? await openClusterStore(config, log) : await openStandaloneStore(config)
      const flow = {
        name,
        uid: 'flow_old',
        version: 1,
        definition: { ...DEFINITION, tools: [], sub_agents: [], evolve: false },
      }
      const execution = {
        kind: 'run' as const,
        flow,
        request: REQUEST,
        subject: 'anonymous',
        idempotencyKey: undefined,
      }
      const traceId = newTraceId()
      const at = new Date(Date.now() - days * DAY_MS)
      const audit = { store_payloads: true, retention_days: 30 }
      const record = rejected(newDispatch(execution, { traceId, audit, at }), invalidRequest('the input is wrong'))
      await stores?.dispatches.create(DEFAULT_TENANT, record, REQUEST.input)
      await stores?.close()
      return traceId
    }

    const listed = async () => {
      const { body } = await bench.call('GET', `/dispatches?status=rejected&flow=${name}`)
      return (body as { dispatches: DispatchSummary[] }).dispatches.map(({ trace_id }) => trace_id)
    }

    it('ends the time for which a record is listed and shown, also of a record that was made before the change', async () => {
      const [old, older] = [await store(3), await store(20)]
      expect(await listed()).to.include.members([old, older])
      for (const [days, shown, hidden] of [
        [30, [old, older], []],
        [7, [old], [older]],
        [1, [], [old, older]],
        [30, [old, older], []],
      ] as const) {
        await setAudit({ retention_days: days })
        const isApplied = async () => {
          const lists = await times(listed)
          return lists.every((ids) => shown.every((id) => ids.includes(id)) && !hidden.some((id) => ids.includes(id)))
        }
        await until(isApplied, { what: `records to be shown for ${days} days` })
        for (const [ids, status] of [
          [shown, 200],
          [hidden, 404],
        ] as const) {
          for (const path of ids.flatMap((id) => [`/dispatches/${id}`, `/dispatches/${id}/events`])) {
            for (const reply of await times(() => bench.call('GET', path))) expect(reply.status, path).to.equal(status)
          }
        }
      }
    })
  })
})
