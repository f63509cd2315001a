import { expect } from 'chai'
import { decodeCursor, encodeCursor, startOfPage, toPage } from '../../shared/kernel/cursor.ts'
import { AppError } from '../../shared/kernel/errors.ts'

const TYPES = ['number', 'string'] as const

function refusalOf(cursor: string): AppError {
  try {
    decodeCursor(cursor, TYPES)
  } catch (error) {
    if (error instanceof AppError) return error
  }
  throw new Error(`accepted: ${cursor}`)
}

const encoded = (text: string) => Buffer.from(text).toString('base64url')

describe('cursors', () => {
  it('D2.7: a cursor decodes to the values that it was made of, and fits into a URL', () => {
    for (const values of [
      [0, ''],
      [-1.5, 'ä/"?&'],
    ]) {
      const cursor = encodeCursor(values)
      expect(cursor).to.match(/^[A-Za-z0-9_-]+$/)
      expect(decodeCursor(cursor, TYPES)).to.deep.equal(values)
    }
  })

  it('D2.7: a page has at most as many items as were asked for, and a cursor only when one more was found', () => {
    const pageOf = (count: number) => toPage(['a', 'b', 'c'].slice(0, count), 2, (last) => [last, 7])
    expect(pageOf(0)).to.deep.equal({ page: [], next_cursor: null })
    expect(pageOf(2)).to.deep.equal({ page: ['a', 'b'], next_cursor: null })
    const { page, next_cursor } = pageOf(3)
    expect(page).to.deep.equal(['a', 'b'])
    expect(startOfPage(next_cursor ?? '', ['string', 'number'])).to.deep.equal(['b', 7])
    const longer = toPage(['a', 'b', 'c', 'd'], 3, (last) => [last])
    expect(startOfPage(longer.next_cursor ?? '', ['string'])).to.deep.equal(['c'])
    expect(startOfPage(undefined, ['string'])).to.equal(undefined)
  })

  const wrong = ['[1]', '[1,"a","b"]', '["a",1]', '[null,"a"]', '[1e999,"a"]', '{"0":1,"1":"a","length":2}', '7', '{']
  for (const text of ['', ...wrong]) {
    it(`D2.7: ${text || 'an empty text'} as a cursor is invalid_request for the field /cursor`, () => {
      expect(refusalOf(encoded(text))).to.include({ status: 400, param: '/cursor' })
    })
  }
})
