import { expect } from 'chai'
import { play, scripted } from './context/setup.ts'

describe('a turn whose provider counts no tokens', () => {
  it('D5.8: is estimated at four characters a token, with the input of its tool calls', async () => {
    const input = JSON.stringify({ path: 'a'.repeat(70) })
    const { events } = await play(
      scripted(
        [
          { type: 'tool_call', id: 'a', toolName: 'Dig', input },
          { type: 'finish', reason: 'tool_use', usage: undefined },
        ],
        [
          { type: 'text_delta', text: 'x'.repeat(400) },
          { type: 'finish', reason: 'end_turn', usage: undefined },
        ],
      ),
      { prompt: 'p'.repeat(4_000) },
    )
    const [first, second] = events.filter((event) => event.type === 'turn_end')
    expect(first).to.include({ output_tokens: Math.ceil(input.length / 4) })
    expect(first?.input_tokens).to.be.within(1_000, 1_100)
    expect(second).to.include({ output_tokens: 100 })
  })
})
