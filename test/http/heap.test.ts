import { expect } from 'chai'
import { createHeapGuard, refuseAtHighHeap } from '../../services/http/heap.ts'
import { AppError } from '../../shared/kernel/errors.ts'

describe('the guard of the heap', () => {
  it('a heap is high above 80 % of its limit, and is read again after 100 ms', () => {
    const heap = { used_heap_size: 80, total_heap_size: 90, heap_size_limit: 100 }
    let now = 0
    const isHigh = createHeapGuard(
      () => heap,
      () => now,
    )
    expect(isHigh()).to.equal(false)
    heap.used_heap_size = 81
    now = 99
    expect(isHigh()).to.equal(false)
    now = 100
    expect(isHigh()).to.equal(true)
    heap.used_heap_size = 10
    now = 200
    expect(isHigh()).to.equal(false)
    heap.total_heap_size = 91
    now = 300
    expect(isHigh(), 'the pages of the heap').to.equal(true)
  })

  it('a process whose heap is high takes no new work, and says when to try again', () => {
    refuseAtHighHeap(() => false)
    expect(() => refuseAtHighHeap(() => true))
      .to.throw(AppError)
      .that.includes({ kind: 'unavailable', retryAfterSecs: 2 })
  })

  it('the heap of a process that has just begun is not high', () => {
    expect(createHeapGuard()()).to.equal(false)
  })
})
