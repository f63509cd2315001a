import { expect } from 'chai'
import { isQueuedRun, newId, newRunId } from '../../shared/kernel/ids.ts'
import { parseJson } from '../../shared/kernel/json.ts'
import { parseTenant } from '../../shared/kernel/tenant.ts'

describe('small parsers and ids', () => {
  it('D2.8: an id is its prefix and 32 hex digits, and no two are equal', () => {
    const ids = Array.from({ length: 100 }, () => newId('run'))
    for (const id of ids) expect(id).to.match(/^run_[0-9a-f]{32}$/)
    expect(new Set(ids).size).to.equal(100)
  })

  it('D2.8: the ids of runs of the standalone form are in the order of their starts, and no two are equal', () => {
    const starts = Array.from({ length: 100 }, (_, n) => Date.parse('2026-11-24') + n)
    const ids = starts.map((ms) => newRunId(ms))
    expect(ids.toSorted()).to.deep.equal(ids)
    for (const id of [...ids, newRunId()]) expect(id).to.match(/^run_[0-9a-f]{32}$/)
    expect(new Set(Array.from({ length: 100 }, () => newRunId(starts[0]))).size).to.equal(100)
    expect(ids.some(isQueuedRun)).to.equal(false)
  })

  it('parseJson returns undefined for text that is not JSON, and every JSON value otherwise', () => {
    for (const text of ['', '{', 'undefined', '1 2', "{'a':1}"]) expect(parseJson(text), text).to.equal(undefined)
    for (const value of [null, 0, '', [], { a: [1] }]) expect(parseJson(JSON.stringify(value))).to.deep.equal(value)
  })

  it('D3.2: a tenant has 1 to 128 characters of its alphabet', () => {
    for (const tenant of ['a', 'A.b_c:d-9', 'x'.repeat(128)]) expect(parseTenant(tenant)).to.equal(tenant)
    for (const claim of ['', 'x'.repeat(129), 'a b', 'a/b', 'ä', 'a\n', 7, null, undefined, ['a']])
      expect(parseTenant(claim), String(claim)).to.equal(undefined)
  })
})
