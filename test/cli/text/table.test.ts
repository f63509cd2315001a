import { expect } from 'chai'
import { type Column, tableLines } from '../../../services/cli/text/table.ts'
import { widthOf } from '../../../services/cli/text/width.ts'

type Row = { id: string; title: string; model: string; cost: string }

const COLUMNS: Column<Row>[] = [
  { title: 'ID', value: ({ id }: Row) => id, isId: true },
  { title: 'TITLE', value: ({ title }: Row) => title, canShrink: true },
  { title: 'MODEL', value: ({ model }: Row) => model, isMinor: true },
  { title: 'COST', value: ({ cost }: Row) => cost, isNumber: true },
]
const rows = [
  { id: 'run_1', title: 'Write the release notes of the whole year', model: 'large-1', cost: '$0.031' },
  { id: 'run_6b03a1b2c3d4e5f6c805', title: '日本語', model: 'large-1', cost: '$12' },
]

describe('services/cli/text/table', () => {
  it('is as wide as it needs to be without a limit, and where the terminal has the space', () => {
    const whole = [
      'ID                        TITLE                                      MODEL      COST',
      'run_1                     Write the release notes of the whole year  large-1  $0.031',
      'run_6b03a1b2c3d4e5f6c805  日本語                                     large-1     $12',
    ]
    expect(tableLines(rows, COLUMNS)).to.deep.equal(whole)
    expect(tableLines(rows, COLUMNS, 200)).to.deep.equal(whole)
  })

  it('shortens ids, leaves out minor columns before a text gets narrow, and then shrinks the text', () => {
    expect(tableLines(rows, COLUMNS, 76)).to.deep.equal([
      'ID             TITLE                                      MODEL      COST',
      'run_1          Write the release notes of the whole year  large-1  $0.031',
      'run_6b03…c805  日本語                                     large-1     $12',
    ])
    expect(tableLines(rows, COLUMNS, 40)[1]).to.equal('run_1          Write the releas…  $0.031')
  })

  it('is never wider than the terminal, however narrow that is, and whatever the columns hold', () => {
    const long = rows.map((row) => ({ ...row, cost: 'x'.repeat(300), title: '日'.repeat(300) }))
    for (const table of [rows, long])
      for (let most = 1; most < 120; most++)
        expect(Math.max(...tableLines(table, COLUMNS, most).map(widthOf)), String(most)).to.be.at.most(most)
  })

  it('holds nothing hidden and no line end of what its rows hold', () => {
    const [, line = ''] = tableLines([{ id: 'a\u001b[2J', title: 'b\u009b\n\u202ec', model: '', cost: '' }], COLUMNS)
    expect(line).to.equal('a[2J  b c')
  })
})
