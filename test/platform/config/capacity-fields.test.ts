import { expect } from 'chai'
import { CAPACITY_FIELDS } from '../../../shared/platform/config/capacity-fields.ts'
import { problems, standalone } from './load.ts'

/** The smallest value that each setting takes, and the next one below it. */
const LEAST: [variable: string, least: string, below: string][] = [
  ['SESSIONS_PER_WORKER', '1', '0'],
  ['SESSIONS_PER_TENANT', '0', '-1'],
  ['SESSION_MEMORY_MB', '1', '0'],
  ['SESSION_IDLE_SECS', '1', '0'],
  ['RUNS_PER_WORKER', '1', '0'],
  ['RUNS_PER_TENANT', '0', '-1'],
  ['PLANS_PER_TENANT', '1', '0'],
  ['PLAN_MB_PER_TENANT', '8', '7'],
  ['SCHEDULE_LEAST_SECS', '1', '0'],
  ['CUSTOMER_ENGINES', '1', '0'],
  ['CUSTOMER_HISTORY_ENTRIES', '0', '-1'],
  ['CUSTOMER_HISTORY_CHARS', '0', '-1'],
  ['UPLOADS_PER_GATEWAY', '1', '0'],
  ['UPLOAD_SPOOL_MB', '480', '479'],
]

describe('config: how much a process takes', () => {
  it('has a least value for each setting that is a number, and says what is wrong with a smaller one', () => {
    const unbounded = ['DURABILITY', 'TENANT_LIMITS', 'CUSTOMER_IDLE_SECS']
    const variables = Object.values(CAPACITY_FIELDS).map(({ name }) => name)
    expect([...LEAST.map(([variable]) => variable), ...unbounded]).to.have.members(variables)
    for (const [variable, least, below] of LEAST) {
      expect(problems({ [variable]: least }), variable).to.deep.equal([])
      expect(problems({ [variable]: below }), variable).to.have.length(1)
      expect(problems({ [variable]: below })[0], variable).to.include(variable)
    }
  })

  it('D9.3: an upload of 320 MB fits into the two thirds of the smallest spool that one tenant may take', () => {
    expect((standalone({ UPLOAD_SPOOL_MB: '480' }).uploadSpoolBytes * 2) / 3).to.be.at.least(320 * 1024 * 1024)
  })

  it('keeps customers in memory for ever with a negative time', () => {
    expect(standalone({ CUSTOMER_IDLE_SECS: '-1' }).customerIdleMs).to.equal(-1_000)
  })

  it('D32: stores sessions only when it is told to, and knows no other durability', () => {
    expect([standalone().durability, standalone({ DURABILITY: 'sessions' }).durability]).to.deep.equal([
      'off',
      'sessions',
    ])
    expect(problems({ DURABILITY: 'all' })).to.have.length(1)
  })
})
