import { expect } from 'chai'
import { HeldTokens, Refused, type Tokens } from '../../../services/console/sign-in/held-tokens.ts'

const START = 1_000_000

describe('the tokens of a person who is signed in', () => {
  let now: number
  let answers: (() => Promise<Tokens>)[]
  let asked: number
  let told: string[]
  let held: HeldTokens

  const tokens = (access: string, secs: number): Tokens => ({ access, refresh: 'r', expiresAt: START + secs * 1_000 })
  const away = () => Promise.reject(new Error('The issuer cannot be reached.'))
  const refuses = () => Promise.reject(new Refused('The issuer refuses the sign-in: invalid_grant'))

  beforeEach(() => {
    now = START
    answers = []
    asked = 0
    told = []
    const renew = () => {
      asked++
      return (answers.shift() ?? away)()
    }
    held = new HeldTokens(tokens('first', 60), {
      renew,
      onExpired: (problem) => void told.push(problem),
      now: () => now,
    })
  })

  it('one that has more than 30 s left is given as it is', async () => {
    expect(await held.token()).to.equal('first')
    expect(asked).to.equal(0)
  })

  it('is renewed once for all who ask', async () => {
    now += 40_000
    answers = [async () => tokens('second', 600)]
    expect(await Promise.all([held.token(), held.token()])).to.deep.equal(['second', 'second'])
    expect(asked).to.equal(1)
  })

  it('an issuer that is away, or answers with a failure, costs nothing while the token is good, and is asked again', async () => {
    now += 40_000
    answers = [away, async () => tokens('second', 600)]
    expect(await held.token()).to.equal('first')
    expect(await held.token()).to.equal('first')
    expect(asked, 'not with each request').to.equal(1)
    now += 2_000
    expect(await held.token()).to.equal('second')
    expect(told).to.deep.equal([])
  })

  it('one whose renewal is refused is used until it expires', async () => {
    now += 40_000
    answers = [refuses]
    expect(await held.token()).to.equal('first')
    now += 15_000
    expect(await held.token()).to.equal('first')
    expect(asked).to.equal(1)
    expect(told).to.deep.equal([])
  })

  for (const [what, answer, problem] of [
    ['an issuer that is away', away, 'The issuer cannot be reached.'],
    ['an issuer that refuses', refuses, 'The issuer refuses the sign-in: invalid_grant'],
  ] as const)
    it(`when it has expired at ${what}, the person is told once, and requests wait until they have signed in again`, async () => {
      now += 61_000
      answers = [answer]
      const waiting = [held.token(), held.token()]
      await Promise.resolve(waiting).then(() => new Promise(setImmediate))
      expect(told).to.deep.equal([problem])
      held.take({ ...tokens('again', 600), refresh: undefined })
      expect(await Promise.all(waiting)).to.deep.equal(['again', 'again'])
      expect(await held.token()).to.equal('again')
    })

  it('one that the server refuses is never given again', async () => {
    answers = [async () => tokens('second', 600)]
    expect(await held.token('first')).to.equal('second')
    const waiting = held.token('second')
    await new Promise(setImmediate)
    expect(told).to.have.length(1)
    held.take(tokens('third', 600))
    expect(await waiting).to.equal('third')
  })

  it('a person who asks for it tries the renewal again, and learns what is in the way', async () => {
    now += 61_000
    answers = [away, away, refuses, async () => tokens('second', 600)]
    const waiting = held.token()
    await new Promise(setImmediate)
    expect(await held.retry().catch((cause: unknown) => cause))
      .to.be.an('error')
      .and.not.instanceOf(Refused)
    expect(await held.retry().catch((cause: unknown) => cause)).to.be.instanceOf(Refused)
    await held.retry()
    expect(await waiting).to.equal('second')
  })
})
