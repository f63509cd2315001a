import { expect } from 'chai'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { digs, play, scripted, USAGE } from './context/setup.ts'

const DOWN: ModelPart[] = [{ type: 'failure', failure: failure('provider_rejected', 'http_400', 'no') }]
const TOTALS = { total_input_tokens: USAGE.input, total_output_tokens: USAGE.output, turn_count: 1 }

describe('the error event of a run', () => {
  it('D4.4: holds the totals of the turns before a failure', async () => {
    const { last } = await play(scripted(digs('a'), DOWN), {})
    expect(last).to.include({ type: 'error', code: 'provider_rejected', cost_usd: 110, ...TOTALS })
  })

  it('D4.4: holds the totals of a run that used up its turns', async () => {
    const { last } = await play(scripted(digs('a')), { maxTurns: 1 })
    expect(last).to.include({ type: 'error', code: 'max_turns_exceeded', ...TOTALS })
  })

  it('D4.4: holds the totals of a run that was cancelled', async () => {
    const caller = new AbortController()
    const cancel = () => {
      caller.abort('cancelled')
      return [] as ModelPart[]
    }
    const { last } = await play(scripted(digs('a'), cancel), { signal: caller.signal })
    expect(last).to.include({ type: 'error', code: 'cancelled', ...TOTALS } satisfies Partial<AgentEvent>)
  })
})
