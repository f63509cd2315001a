// Tests projection.ts and routes.ts.
import { EventSchemas } from '@ag-ui/core/schemas'
import { expect } from 'chai'
import { AgUiProjection } from '../../../../services/gateway/dialects/ag-ui/projection.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const projection = () => new AgUiProjection({ threadId: 't', runId: 'r', engineRunId: of.RUN })

/** The events of one response, each of which the protocol's own schemas accept. */
function eventsOf(events: AgentEvent[], part?: Parameters<typeof of.respond>[2]) {
  const { chunks } = of.respond(projection(), events, part)
  for (const chunk of chunks) EventSchemas.parse(chunk)
  return chunks
}

describe('a run as events of AG-UI, checked by its own schemas', () => {
  it('is interrupted with all that waits, each by the id of the run and the request', () => {
    const last = eventsOf(of.WITH_SUB_AGENT).at(-1) as { outcome?: { interrupts: Record<string, unknown>[] } }
    expect(last.outcome?.interrupts.map(({ id, toolCallId }) => [id, toolCallId])).to.deep.equal([
      [`${of.RUN}/perm_1`, 'c1'],
      [`${of.RUN}/perm_2`, 'sub_1/c1'],
    ])
  })

  it('goes on behind the interrupt, with steps that begin and end in the same response', () => {
    const events = eventsOf(of.WITH_SUB_AGENT, { known: new Set(['perm_1', 'perm_2']), passed: 99 })
    const steps = events.flatMap(({ type, stepName }) => (type.startsWith('STEP') ? [[type, stepName]] : []))
    expect(steps).to.deep.equal([
      ['STEP_STARTED', 'turn-2'],
      ['STEP_FINISHED', 'turn-2'],
    ])
    expect(events.at(-1)).to.deep.include({ outcome: { type: 'success' } })
  })

  it('fails, is cut off, and ends with a plan as the run does', () => {
    expect(eventsOf([of.turn(1), of.failed]).at(-1)).to.include({ type: 'RUN_ERROR', code: 'provider_rejected' })
    expect(eventsOf([of.turn(1), of.queued]).map(({ type }) => type)).to.include.members(['CUSTOM', 'RUN_FINISHED'])
    expect(projection().cut('slow_consumer')[0]).to.include({ code: 'slow_consumer' })
  })
})

describe('POST /ag-ui', () => {
  const start = useGateways()

  it('D31.7a: what this server cannot take is refused by its place', async () => {
    const { post } = await start()
    const messages = [{ role: 'user', content: 'hi' }]
    const refused: [object, string][] = [
      [{ runId: 'r', messages }, '/threadId'],
      [{ threadId: 'a/b', runId: 'r', messages }, '/threadId'],
      [{ threadId: 't', runId: 'r', messages, tools: [{ name: 'f' }] }, '/tools'],
      [{ threadId: 't', runId: 'r', messages: [] }, '/messages'],
      [{ threadId: 't', runId: 'r', resume: [{ interruptId: 'x' }] }, '/resume/0/interruptId'],
    ]
    for (const [body, param] of refused) {
      const response = await post('/ag-ui', body)
      expect([response.status, (await refusalOf(response)).param]).to.deep.equal([400, param])
    }
  })
})
