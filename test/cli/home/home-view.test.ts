import { expect } from 'chai'
import { chosenOf, homeLines, itemsOf, type Known } from '../../../services/cli/home/home-view.ts'
import { createStyle } from '../../../services/cli/text/style.ts'
import { widthOf } from '../../../services/cli/text/width.ts'

const NOW = Date.parse('2026-11-30T12:00:00Z')
const clock = { now: NOW, localTime: (time: string) => new Date(time) }
const style = createStyle({ hasColours: false, isUtf8: true })
const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1_000).toISOString()
const HOSTILE = '\u001b[2J\u009b1m\u202e\nx'

const known = (hostile = ''): Known =>
  ({
    requests: [
      {
        ...{ id: 'perm_1', tool_name: `Write${hostile}`, input: { path: `a.txt${hostile}` }, expires_at: at(-252) },
        ...{ session_id: 'support-7', run_id: 'run_1' },
      },
    ],
    runs: [
      {
        run_id: 'run_1',
        title: `Ask${hostile}`,
        status: 'waiting',
        started_at: at(12),
        ended_at: null,
        session_id: 'support-7',
      },
      {
        run_id: 'run_2',
        title: 'Old',
        status: 'failed',
        code: `provider_auth${hostile}`,
        started_at: at(99),
        ended_at: at(90),
      },
    ],
    plans: [
      {
        id: 'plan_1',
        title: `Notes${hostile}`,
        status: 'running',
        step_counts: { done: 1, failed: 0, skipped: 0, pending: 2, running: 1 },
      },
    ],
  }) as unknown as Known

const view = (items = itemsOf(known(), clock), chosen = 0) => ({
  where: 'http://127.0.0.1:8080/v1',
  items,
  chosen,
  notice: '',
})

describe('services/cli/home/home-view', () => {
  it('shows what needs a person, what is at work and what is done, with the time that is left and what was used', () => {
    const lines = homeLines(view(), { columns: 61, rows: 14, style })
    const row = (left: string, right: string) => left.padEnd(60 - right.length) + right
    expect(lines).to.deep.equal([
      ' agent-engine · http://127.0.0.1:8080/v1',
      '',
      ' NEEDS YOU (1)',
      row(' › Write a.txt', 'denied in 4:12'),
      '',
      ' AT WORK (2)',
      row('   Ask', 'waiting 12.0 s'),
      row('   Notes', 'plan running 1/4'),
      '',
      ' DONE (1)',
      row('   Old', 'provider_auth $0 1 min ago'),
      '',
      '',
      ' up down  choose    enter  open    c  chat    q  quit',
    ])
  })

  it('says what to do where there is nothing, and what is wrong in place of the keys', () => {
    const lines = homeLines({ ...view([]), notice: 'the server cannot be reached' }, { columns: 80, rows: 24, style })
    expect(lines.join('\n')).to.include('nothing waits for you').and.include('c begins a chat')
    expect(lines.at(-1)).to.equal(' the server cannot be reached')
  })

  it('has as many lines as the terminal, none wider, and the chosen one among them', () => {
    const items = Array.from({ length: 60 }, (_, i) => ({
      group: 'done' as const,
      id: `${i}`,
      text: `${i} 日本語`.repeat(9),
      right: 'r'.repeat(30),
      enter: [],
    }))
    for (const rows of [1, 4, 10, 80])
      for (const columns of [1, 9, 80, 200]) {
        const lines = homeLines(view(items, 40), { columns, rows, style })
        expect(lines.length).to.equal(rows)
        expect(Math.max(...lines.map(widthOf))).to.be.at.most(columns)
        if (rows > 3 && columns > 9) expect(lines.filter((line) => line.startsWith(' › 40 '))).to.have.length(1)
      }
  })

  it('holds nothing of models, tools and tenants that moves a terminal or is not seen', () => {
    const lines = homeLines(
      { ...view(itemsOf(known(HOSTILE), clock)), where: HOSTILE, notice: HOSTILE },
      { columns: 200, rows: 24, style },
    )
    expect(lines.join('')).to.match(/^[\x20-\x7e·›…]*$/)
  })

  it('keeps the chosen line while others come and go, and takes that in its place when it is gone', () => {
    const items = itemsOf(known(), clock)
    expect(chosenOf(items, { id: 'plan_1', at: 0 })).to.equal(2)
    expect(chosenOf(items, { id: 'gone', at: 3 })).to.equal(3)
    expect(chosenOf(items, { id: 'gone', at: 9 })).to.equal(3)
    expect(chosenOf([], { id: 'gone', at: 9 })).to.equal(0)
  })
})
