import { expect } from 'chai'
import { problemOf, type RaceOutcome } from '../scenarios/permission-races/kinds.ts'

const allow = (status: number) => ({ isAllow: true, status })
const deny = (status: number) => ({ isAllow: false, status })

const ALLOWED: RaceOutcome = {
  replies: [allow(200), deny(409)],
  fair: ['200 409', '409 200', '404 404'],
  isAllowed: true,
  hasActed: true,
  lateStatus: 409,
}
const DENIED: RaceOutcome = { ...ALLOWED, replies: [allow(409), deny(200)], isAllowed: false, hasActed: false }
const EXPIRED: RaceOutcome = { ...DENIED, replies: [allow(404), deny(404)], lateStatus: 404 }

describe('the judgement of a permission race', () => {
  for (const [name, outcome] of Object.entries({ ALLOWED, DENIED, EXPIRED }))
    it(`P6: accepts a race that kept the promise: ${name}`, () => {
      expect(problemOf(outcome)).to.equal(undefined)
    })

  const WRONG: [name: string, outcome: RaceOutcome, problem: string][] = [
    ['two replies were answered ok', { ...ALLOWED, replies: [allow(200), deny(200)] }, 'answered 200 200'],
    ['no reply won, and none was late', { ...EXPIRED, replies: [allow(409), deny(409)] }, 'answered 409 409'],
    ['one was late and one was second', { ...EXPIRED, replies: [allow(404), deny(409)] }, 'answered 404 409'],
    ['an allowed call was refused', { ...ALLOWED, isAllowed: false }, "the tool's result is a refusal"],
    ['a denied call was executed', { ...DENIED, hasActed: true }, 'the tool acted'],
    ['an allowed call was not executed', { ...ALLOWED, hasActed: false }, 'the tool did not act'],
    [
      'a call was allowed after the timeout',
      { ...EXPIRED, isAllowed: true, hasActed: true },
      "the tool's result is good",
    ],
    ['a decided request accepted another reply', { ...ALLOWED, lateStatus: 200 }, 'a late reply 200'],
    ['a request that timed out counts as replied to', { ...EXPIRED, lateStatus: 409 }, 'a late reply 409'],
  ]
  for (const [name, outcome, problem] of WRONG)
    it(`P6: reports a broken promise: ${name}`, () => {
      expect(problemOf(outcome)).to.include(problem)
    })
})
