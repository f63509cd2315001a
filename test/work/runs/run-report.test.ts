import { expect } from 'chai'
import { errorEvent, type RunErrorCode, type RunEvent } from '../../../shared/kernel/events.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { linked } from '../../../shared/kernel/trace.ts'
import type { RunUsage } from '../../../shared/tenancy/usage/port.ts'
import type { RunFacts } from '../../../shared/work/runs/records/record.ts'
import { RunReporter } from '../../../shared/work/runs/run-report.ts'
import { tenantId } from '../../support/tenant.ts'
import { setUpRecorder } from './records/setup.ts'

const TENANT = tenantId('t_1')
const RUN: RunFacts = { tenant: TENANT, run_id: 'run_1', kind: 'run', started_at: '2026-11-24T10:00:00.000Z' }
const TURN_START: RunEvent = { type: 'turn_start', turn_number: 1, model: 'm' }
const DONE: RunEvent = {
  ...{
    type: 'done',
    total_input_tokens: 20,
    total_output_tokens: 7,
    total_tokens: 27,
    cost_usd: 0.5,
    cache_read_tokens: 4,
    cache_write_tokens: 3,
  },
  ...{ turn_count: 1, stop_reason: 'end_turn' },
}

describe('the report of what a run has used', () => {
  /** Reports a run with these events, and returns what was counted and the log lines. */
  function report(run: Parameters<RunReporter['open']>[0], events: readonly RunEvent[], subject?: string) {
    const added: [TenantId, RunUsage][] = []
    const lines: string[] = []
    const log = createLog({ level: 'info', write: (line) => lines.push(line) })
    const usage = { add: (tenant: TenantId, used: RunUsage) => void added.push([tenant, used]) }
    const reporter = new RunReporter({ log, metrics: NO_METRICS, usage })
    const opened = linked(subject === undefined ? undefined : { subject }, () => reporter.open(run))
    for (const [i, event] of events.entries()) opened.note(event, { bytes: 1, isLast: i === events.length - 1 })
    return { added, lines }
  }

  it('is made once, at its end, with the totals and with who and what it was for', () => {
    const { added, lines } = report({ ...RUN, customer_id: 'c-1', flow: 'f' }, [TURN_START, DONE], 'ada')
    expect(added).to.have.length(1)
    const [[tenant, { ms, ...usage }] = expect.fail()] = added
    expect(tenant).to.equal(TENANT)
    expect(ms).to.be.at.least(0)
    const spent = { input_tokens: 20, cache_read_tokens: 4, cache_write_tokens: 3, output_tokens: 7, cost_usd: 0.5 }
    const of = { kind: 'run', model: 'm', flow: 'f', customer: 'c-1', subject: 'ada' }
    expect(usage).to.deep.equal({ ...of, hasFailed: false, isInvalid: false, ...spent })
    expect(lines.join(), 'the log').not.to.include('c-1')
  })

  it('says what has failed: an error, unless the run was cancelled or its session deleted', () => {
    const failed = (code: RunErrorCode) => report(RUN, [errorEvent(code, 'ended')]).added[0]?.[1].hasFailed
    const codes = ['internal', 'worker_lost', 'cancelled', 'session_deleted'] as const
    expect(codes.map(failed)).to.deep.equal([true, true, false, false])
  })

  it('D20.3: says that a record has everything about its run once it is stored, unless the run has called tools', async () => {
    const { recorder } = setUpRecorder()
    const reporter = new RunReporter({ log: createLog({ level: 'error' }), metrics: NO_METRICS, recorder })
    const toolUse: RunEvent = { type: 'tool_use', id: 'call_1', tool_name: 'Read', input: {} }
    const runs = [[DONE], [toolUse, DONE]].map((events, n) => {
      const opened = reporter.open({ ...RUN, run_id: `run_${n}` })
      for (const [i, event] of events.entries()) opened.note(event, { bytes: 1, isLast: i === events.length - 1 })
      return opened
    })
    expect(runs.map((run) => run.isRecordedWhole)).to.deep.equal([false, false])
    await recorder.settled()
    expect(runs.map((run) => run.isRecordedWhole)).to.deep.equal([true, false])
    expect(runs.map((run) => run.isReplayable)).to.deep.equal([true, true])
  })

  it('is made of the steps of a plan, and not of the plan', () => {
    expect(report({ ...RUN, kind: 'step' }, [DONE]).added).to.have.length(1)
    expect(report({ ...RUN, kind: 'plan' }, [DONE]).added).to.have.length(0)
  })
})
