import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { createOperationGuard, isDuplicate } from '../../../../shared/platform/store/sqlite/guard.ts'
import { recordHealth } from '../record-health.ts'

describe('the guard of SQLite’s operations', () => {
  const sqliteError = (errcode: unknown) => Object.assign(new Error('/secret/file'), { errcode })
  const throwing = (cause: unknown) => () => {
    throw cause
  }

  it('returns the result and reports an answer', () => {
    const { health, reports } = recordHealth()
    expect(createOperationGuard(health)(() => 5)).to.equal(5)
    expect(reports).to.deep.equal(['answered'])
  })

  it('turns a file that is locked, missing, full or damaged into unavailable, whatever the detail of the code', () => {
    for (const code of [5, 6, 8, 10, 11, 13, 14, 26, 5 | (2 << 8), 10 | (12 << 8)]) {
      const { health, reports } = recordHealth()
      const guard = createOperationGuard(health)
      expect(() => guard(throwing(sqliteError(code))), String(code)).to.throw(AppError, /^the store cannot be reached/)
      expect(reports).to.deep.equal(['failed'])
    }
  })

  it('passes a duplicate and every other error on unchanged', () => {
    const { health, reports } = recordHealth()
    for (const cause of [sqliteError(2067), sqliteError(1), sqliteError('5'), new TypeError('bug'), { errcode: 5 }])
      expect(() => createOperationGuard(health)(throwing(cause)))
        .to.throw()
        .that.equals(cause)
    expect(reports).to.deep.equal([])
    expect([isDuplicate(sqliteError(2067)), isDuplicate(sqliteError(19)), isDuplicate(undefined)]).to.deep.equal([
      true,
      false,
      false,
    ])
  })
})
