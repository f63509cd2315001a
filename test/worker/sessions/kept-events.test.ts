import { expect } from 'chai'
import { KeptEvents } from '../../../services/worker/sessions/kept-events.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'

const END: RunEvent = { type: 'turn_end', turn_number: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 }
const large = (type: 'text' | 'subagent_event'): RunEvent => {
  const text = 'x'.repeat(1024 * 1024)
  return type === 'text' ? { type, text } : { type, subagent_id: 's', event_type: 'text', text }
}

describe('the events of a run that are kept for another worker', () => {
  for (const type of ['text', 'subagent_event'] as const)
    it(`an entry of the log holds at most 2 MiB of them, those of ${type} included, and says where it begins`, () => {
      const kept = new KeptEvents()
      for (let seq = 1; seq <= 4; seq++) kept.add(seq, large(type))
      kept.add(5, END)
      const { events, events_from } = kept.take(false)
      expect([events.map(([seq]) => seq), events_from]).to.deep.equal([[4, 5], 4])
      kept.add(6, { type: 'text', text: 'more' })
      kept.add(7, { ...END, turn_number: 2 })
      expect(kept.take(false)).to.deep.equal({
        events: [
          [6, { type: 'text', text: 'more' }],
          [7, { ...END, turn_number: 2 }],
        ],
      })
    })
})
