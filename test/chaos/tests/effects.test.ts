import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { turnsOf } from '../../../shared/agent/providers/demo/script.ts'
import { LoopLag } from '../../harness/loop-lag.ts'
import { check } from '../checker.ts'
import { startEffects } from '../effects.ts'
import { type Entry, now } from '../history.ts'
import { acting, paced } from '../prompts.ts'

describe('the tool calls of a scenario', () => {
  it('are recorded with run, epoch and call, so that the checker finds a call of a stale worker', async () => {
    const history: Entry[] = [
      { kind: 'frame', t: 0, run: 'run_0000001fab', seq: 0, event: 'error', code: 'worker_lost', isTerminal: true },
    ]
    await using effects = await startEffects((entry) => void history.push(entry))
    effects.assign('m', { run: 'run_0000001fab' })
    const [first] = effects.inputs('m', 2) as { url: string }[]
    expect(await (await fetch(first?.url ?? '')).text()).to.equal('done')
    expect(history.at(-1)).to.include({ kind: 'tool', run: 'run_0000001fab', epoch: 31, call: '0' })
    expect(check(history).map(({ rule }) => rule)).to.include('extra-effect')
    expect(effects.count).to.equal(1)
  })

  it('are recorded with the time of their connection, which a frozen process opens before its request', async () => {
    const acts = Promise.withResolvers<Entry>()
    await using effects = await startEffects(acts.resolve)
    const [input] = effects.inputs('m', 1) as { url: string }[]
    const { port, pathname, search } = new URL(input?.url ?? '')
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    await new Promise((resolve) => setTimeout(resolve, 200))
    const sentAt = now()
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: effects\r\n\r\n`)
    expect((await acts.promise).t).to.be.below(sentAt - 100)
    await once(socket.resume(), 'close')
  })

  it('D1.4: the prompts make the demo model say one number at a time, and call a tool once in each turn', () => {
    expect(turnsOf(paced({ count: 2, everyMs: 50, words: 2 }))).to.deep.equal([
      [
        { do: 'say', text: '0 0' },
        { do: 'sleep', ms: 50 },
        { do: 'say', text: '1 1' },
        { do: 'sleep', ms: 50 },
      ],
    ])
    const turns = turnsOf(acting({ inputs: [{ url: 'a' }, { url: 'b' }], tool: 'WebFetch', everyMs: 10 }))
    expect(turns.map((acts) => acts.map((act) => act.do))).to.deep.equal([['sleep', 'call'], ['sleep', 'call'], []])
  })

  it('the lag of this process’s own event loop is measured', async () => {
    using lag = new LoopLag()
    await new Promise((resolve) => setTimeout(resolve, 20))
    const until = performance.now() + 120
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(Number(/p99.9 (\d+) ms/.exec(lag.text)?.[1])).to.be.within(60, 2_000)
  })
})
