import { expect } from 'chai'
import { tableLines } from '../../../services/cli/text/table.ts'
import { widthOf } from '../../../services/cli/text/width.ts'

type Row = { id: string; title: string; cost: string }

const COLUMNS = [
  { title: 'ID', value: ({ id }: Row) => id },
  { title: 'TITLE', value: ({ title }: Row) => title, canShrink: true },
  { title: 'COST', value: ({ cost }: Row) => cost, isNumber: true },
]
const rows = [
  { id: 'run_1', title: 'Write the release notes of the whole year', cost: '$0.031' },
  { id: 'run_22', title: '日本語', cost: '$12' },
]

describe('services/cli/text/table', () => {
  it('is as wide as it needs to be without a limit', () => {
    expect(tableLines(rows, COLUMNS)).to.deep.equal([
      'ID      TITLE                                        COST',
      'run_1   Write the release notes of the whole year  $0.031',
      'run_22  日本語                                        $12',
    ])
  })

  it('shrinks the column that may, and no line is wider than the terminal', () => {
    const lines = tableLines(rows, COLUMNS, 40)
    expect(lines[1]).to.equal('run_1   Write the release notes…  $0.031')
    expect(Math.max(...lines.map(widthOf))).to.equal(40)
  })

  it('leaves a table as it is that fits', () => {
    expect(tableLines(rows, COLUMNS, 200)).to.deep.equal(tableLines(rows, COLUMNS))
  })
})
