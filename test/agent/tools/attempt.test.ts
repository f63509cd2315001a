import { expect } from 'chai'
import { attempt } from '../../../shared/agent/tools/attempt.ts'
import { succeed, type ToolOutcome } from '../../../shared/agent/tools/port.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'

const systemError = (code: string) => Object.assign(new Error(`${code}: /secret/path`), { code, syscall: 'open' })

describe('the attempt of a tool call', () => {
  const run = new AbortController()
  const outcomeOf = (work: () => Promise<ToolOutcome>) => attempt({ subject: 'a.txt', signal: run.signal }, work)
  const failingWith = (cause: unknown) => outcomeOf(() => Promise.reject(cause))

  it('returns the outcome of the work', async () => {
    expect(await outcomeOf(async () => succeed('done'))).to.deep.equal({ output: 'done', isError: false })
  })

  it('returns the message of an expected refusal as an error', async () => {
    expect(await failingWith(invalidRequest('too long'))).to.deep.equal({ output: 'too long', isError: true })
  })

  it('describes an error of the operating system in its own words, because the message holds a path', async () => {
    for (const [code, text] of [
      ['ENOENT', 'no such file or folder'],
      ['EXOTIC', 'the operating system refused it (EXOTIC)'],
    ] as const) {
      expect(await failingWith(systemError(code))).to.deep.equal({ output: `a.txt: ${text}.`, isError: true })
    }
  })

  it('throws a bug as it is', async () => {
    const { syscall: _, ...noSystemCall } = { code: 'ENOENT', syscall: 'open' }
    for (const bug of [
      new TypeError('bug'),
      new AppError('internal', 'bug'),
      Object.assign(new Error('bug'), noSystemCall),
      Object.assign(new Error('bug'), { syscall: 'open' }),
      { code: 'ENOENT', syscall: 'open' },
    ])
      expect(await failingWith(bug).catch((cause: unknown) => cause)).to.equal(bug)
  })

  it('says that the run ended, whatever the work threw, and does not begin work after the end', async () => {
    const ended = new AbortController()
    let begun = 0
    const work = async () => {
      begun += 1
      ended.abort()
      throw new TypeError('bug')
    }
    for (let calls = 0; calls < 2; calls += 1) {
      expect(await attempt({ subject: 'a.txt', signal: ended.signal }, work)).to.deep.equal({
        output: 'The call was stopped because the run ended.',
        isError: true,
      })
    }
    expect(begun).to.equal(1)
  })
})
