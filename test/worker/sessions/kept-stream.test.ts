import { expect } from 'chai'
import { KeptStream } from '../../../services/worker/sessions/kept-stream.ts'
import type { Batched } from '../../../shared/kernel/async/batch.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { DONE } from '../events.ts'

const delta = (text: string): RunEvent => ({ type: 'text_delta', text })

describe('the events of a run whose turns are stored', () => {
  it('D32.7a: those that the run has made together are sent one by one, each when it may be, and none when another worker makes them', async () => {
    async function* made(): AsyncGenerator<Batched<RunEvent>> {
      yield [delta('a'), delta('b'), delta('c')]
      yield DONE
    }
    const seen: string[] = []
    const mayGoOn = Promise.withResolvers<void>()
    let isHere = true
    const stream = new KeptStream(made(), {
      observe: () => {},
      send(event) {
        seen.push(event.type === 'text_delta' ? event.text : event.type)
        return seen.length === 2 ? mayGoOn.promise : undefined
      },
      onTurn: () => {},
      stay: () => (isHere ? undefined : Promise.resolve(false)),
      end: async (last) => [last],
    })
    expect(await stream.next()).to.deep.equal({ done: false, value: delta('a') })
    const second = stream.next()
    expect(seen).to.deep.equal(['a', 'b'])
    mayGoOn.resolve()
    expect(await second).to.deep.equal({ done: false, value: delta('b') })
    isHere = false
    expect(await stream.next()).to.deep.equal({ done: true, value: undefined })
    expect(seen).to.deep.equal(['a', 'b'])
  })
})
