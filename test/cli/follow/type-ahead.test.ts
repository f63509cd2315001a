import { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { TypeAhead } from '../../../services/cli/follow/type-ahead.ts'
import type { Io } from '../../../services/cli/io.ts'
import { collect } from '../outputs.ts'

/** A terminal whose keys a test presses. */
class Keyboard extends EventEmitter {
  isRaw = false
  setRawMode(isRaw: boolean): void {
    this.isRaw = isRaw
  }
  pause(): void {}
  resume(): void {}
}

describe('services/cli/follow/type-ahead', () => {
  /** Somebody who types while a run works, which refuses what it is told after its end. */
  function typing({ isOver = false } = {}) {
    const stdin = new Keyboard()
    const [printed, told, interrupts]: [string[], string[], number[]] = [[], [], []]
    let prompt: (() => string) | undefined
    const screen = {
      print: (...lines: string[]) => void printed.push(...lines),
      setPrompt: (asked: (() => string) | undefined) => void (prompt = asked),
      clear: () => {},
    }
    const io = { stdin, interrupt: () => void interrupts.push(1) } as unknown as Io
    const ahead = new TypeAhead(io, collect().output.style)
    const steer = async (text: string) => {
      if (isOver) throw new Error('the run has ended')
      told.push(text)
    }
    ahead.begin({ screen, steer })
    const type = async (keys: string) => {
      for (const key of keys) stdin.emit('data', Buffer.from(key))
      await setImmediate()
    }
    return { ahead, stdin, printed, told, interrupts, type, prompt: () => prompt?.() ?? '' }
  }

  it('Enter has a line wait; Tab, and /steer before it, tell the run; what both do stands beside the line', async () => {
    const { ahead, told, printed, type, prompt } = typing()
    await type('firsk\u007ft')
    expect(prompt()).to.equal('› first  Enter: when it is done · Tab: tell it now')
    await type('\r  \r/steer be kind\rnow\t\t')
    expect([ahead.queued, told]).to.deep.equal([['first'], ['be kind', 'now']])
    expect(printed).to.deep.equal([
      '  waits for the end of this run: first',
      '  told, and read next: be kind',
      '  told, and read next: now',
    ])
    expect(prompt()).to.equal('')
  })

  it('the keys are those of a question while one is asked, also where several are', async () => {
    const { ahead, stdin, type, prompt } = typing()
    await type('dra')
    const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const asked = answers.map(({ promise }) => ahead.during(() => promise))
    await type('a')
    expect([prompt(), stdin.isRaw]).to.deep.equal(['', false])
    answers[0]?.resolve()
    await asked[0]
    await type('a')
    answers[1]?.resolve()
    await asked[1]
    await type('ft')
    expect(prompt()).to.match(/^› draft /)
    ahead.end()
    await type('more')
    expect([ahead.takeBack(), ahead.takeBack(), stdin.isRaw, prompt()]).to.deep.equal(['draft', '', false, ''])
  })

  it('lines that wait for a run that fails are given back with the line that was not finished', async () => {
    const { ahead, type } = typing()
    await type('one\rtwo\rthr')
    ahead.end()
    ahead.hold()
    expect([ahead.queued, ahead.takeBack()]).to.deep.equal([[], 'one two thr'])
  })

  it('Ctrl-C is an interrupt, Escape and Ctrl-U empty the line, arrows are nothing, and a run that has ended is told nothing', async () => {
    const { ahead, stdin, interrupts, printed, type } = typing({ isOver: true })
    await type('gone\u001b')
    await type('gone\u0015')
    stdin.emit('data', Buffer.from('\u001b[A'))
    stdin.emit('data', Buffer.from('é').subarray(0, 1)) // A character in two pieces.
    stdin.emit('data', Buffer.from('é').subarray(1))
    await type('\u0003')
    expect(interrupts).to.have.length(1)
    await type('\t')
    expect(printed).to.deep.equal(['  not told: the run has ended'])
    ahead.end()
    expect(ahead.takeBack(), 'what was not taken is not lost').to.equal('é')
  })
})
