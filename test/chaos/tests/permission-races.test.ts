import { expect } from 'chai'
import { problemOf, type Verdict } from '../scenarios/permission-races/kinds.ts'

const allow = (status: number) => ({ isAllow: true, status })
const deny = (status: number) => ({ isAllow: false, status })

const ALLOWED: Verdict = {
  replies: [allow(200), deny(409)],
  fair: ['200 409', '409 200', '404 404'],
  isAllowed: true,
  hasActed: true,
  lateStatus: 409,
}
const DENIED: Verdict = { ...ALLOWED, replies: [allow(409), deny(200)], isAllowed: false, hasActed: false }
const EXPIRED: Verdict = { ...DENIED, replies: [allow(404), deny(404)], lateStatus: 404 }

describe('what P6 is judged by', () => {
  for (const [name, verdict] of Object.entries({ ALLOWED, DENIED, EXPIRED }))
    it(`P6: a race that ended well has no problem: ${name}`, () => {
      expect(problemOf(verdict)).to.equal(undefined)
    })

  const WRONG: [name: string, verdict: Verdict, problem: string][] = [
    ['two replies were told ok', { ...ALLOWED, replies: [allow(200), deny(200)] }, 'answered 200 200'],
    ['no reply won and nobody was late', { ...EXPIRED, replies: [allow(409), deny(409)] }, 'answered 409 409'],
    ['one was late and one was second', { ...EXPIRED, replies: [allow(404), deny(409)] }, 'answered 404 409'],
    ['allowed, and refused', { ...ALLOWED, isAllowed: false }, "the tool's result is a refusal"],
    ['denied, and done all the same', { ...DENIED, hasActed: true }, 'the tool acted'],
    ['allowed, and not done', { ...ALLOWED, hasActed: false }, 'the tool did not act'],
    ['timed out, and allowed', { ...EXPIRED, isAllowed: true, hasActed: true }, "the tool's result is good"],
    ['a decided request takes another reply', { ...ALLOWED, lateStatus: 200 }, 'a late reply 200'],
    ['a timed out one is said to have been replied to', { ...EXPIRED, lateStatus: 409 }, 'a late reply 409'],
  ]
  for (const [name, verdict, problem] of WRONG)
    it(`P6: a broken promise is seen: ${name}`, () => {
      expect(problemOf(verdict)).to.include(problem)
    })
})
