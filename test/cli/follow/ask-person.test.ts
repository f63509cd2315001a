import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import { askPerson } from '../../../services/cli/follow/ask-person.ts'
import type { Io } from '../../../services/cli/io.ts'
import type { PermissionAsk } from '../../../shared/client/client.ts'
import { ApiError } from '../../../shared/client/errors.ts'
import { until } from '../../support/until.ts'
import { collect } from '../outputs.ts'

/** A terminal whose keys a test presses. */
class Keyboard extends EventEmitter {
  isTTY = true
  isRaw = false
  setRawMode(isRaw: boolean): void {
    this.isRaw = isRaw
  }
  pause(): void {}
  resume(): void {}
}

describe('services/cli/follow/ask-person', () => {
  /** Asks, and answers with the keys of `keys`, each as often as is needed until the question hears it. */
  async function ask(keys: string, allow: (options: object) => Promise<void> = async () => {}, content = 'hello') {
    const stdin = new Keyboard()
    const { output } = collect()
    const [printed, answers, prompts]: [string[], object[], string[]] = [[], [], []]
    const rawAtPrompts: boolean[] = []
    const decided = new AbortController()
    const asked = {
      ...{ id: 'perm_1', toolName: 'Write', input: { path: 'a.txt', content }, message: 'It wants to write.' },
      ...{ expiresAt: new Date(Date.now() + 60_000), signal: decided.signal, request: {} },
      async allow(options: object) {
        answers.push(options)
        await allow(options)
      },
    } as unknown as PermissionAsk
    const screen = {
      print: (...lines: string[]) => void printed.push(...lines),
      setPrompt: (prompt: (() => string) | undefined) => {
        if (!prompt) return
        prompts.push(prompt())
        rawAtPrompts.push(stdin.isRaw)
      },
      clear: () => {},
    }
    const asking = askPerson(asked, { io: { stdin } as unknown as Io, output, screen })
    let isOver = false
    void asking.then(() => {
      isOver = true
    })
    for (const [i, key] of keys.split('').entries()) {
      const isHeard = () => {
        stdin.emit('data', Buffer.from(key))
        return isOver || prompts.length > i + 1
      }
      await until(isHeard, { what: `the key ${key} to be heard`, everyMs: 20 })
    }
    return { asking, decided, printed, answers, prompts, rawAtPrompts, stdin }
  }

  it('shows the call and what it would change, then one line with the keys and the time that is left', async () => {
    const { asking, decided, printed, prompts, stdin } = await ask('')
    expect(printed[0]).to.match(/^ *\? Write +a\.txt/)
    expect(printed.slice(1).join('\n')).to.include('hello')
    expect(prompts).to.have.length(1)
    expect(prompts[0]).to.match(/\[a\]llow .*denied in (1:00|0:59|59 s|60 s)/)
    decided.abort()
    await asking
    expect(stdin.isRaw).to.equal(false)
  })

  it('reads keys before it asks for one: of two Ctrl-C at once a terminal would make one signal', async () => {
    const { asking, decided, rawAtPrompts } = await ask('')
    expect(rawAtPrompts).to.deep.equal([true])
    decided.abort()
    await asking
  })

  it('`v` shows all of it and asks again, and `s` allows the tool for the rest of the session', async () => {
    const { asking, printed, answers } = await ask('vs')
    await asking
    expect(printed.at(-1)).to.include('It wants to write.')
    expect(answers).to.deep.equal([{ remember: true }])
  })

  it('a call that is not shown whole is allowed by no key before `v`, and says so at its top and at the keys', async () => {
    const content = `${'x'.repeat(200)}; the end`
    const { asking, printed, prompts, answers } = await ask('asva', undefined, content)
    await asking
    expect(printed[1]).to.include('This is not all of it')
    expect(prompts[0]).to.match(/\[v\]iew all, then \[a\]llow/)
    expect(printed.filter((line) => line.includes('You have not seen all of it'))).to.have.length(2)
    expect(printed.findIndex((line) => line.includes('; the end'))).to.be.greaterThan(3)
    expect(answers).to.deep.equal([{ remember: false }])
  })

  it('an answer that the server does not take is told, and the question stays', async () => {
    const refusal = new ApiError(new Response(null, { status: 400 }), 'no such path')
    let tries = 0
    const { asking, printed, answers } = await ask('aa', async () => {
      if (tries++ === 0) throw refusal
    })
    await asking
    expect(printed.at(-1)).to.include('no such path')
    expect(answers).to.deep.equal([{ remember: false }, { remember: false }])
  })
})
