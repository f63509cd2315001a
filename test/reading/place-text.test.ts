import { expect } from 'chai'
import { placeText } from '../../shared/reading/place-text.ts'

describe('the place of a run that waits, as a person reads it', () => {
  it('says about when it starts, where that is known', () => {
    const of = (ms: number | null) =>
      placeText({ place: 3, expected_start: ms === null ? null : new Date(ms).toISOString() }, 1_000)
    expect([null, 21_400, 0, 601_000].map(of)).to.deep.equal([
      'Waiting, place 3',
      'Waiting, place 3, about 20 s',
      'Waiting, place 3, about 1 s',
      'Waiting, place 3, about 10 min',
    ])
  })
})
