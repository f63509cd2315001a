import { expect } from 'chai'
import { RUN_ERROR_CODES } from '../../shared/kernel/events.ts'
import { COUNTERS, DIVIDED_COUNTERS, GAUGES, HISTOGRAMS } from '../../shared/kernel/metrics.ts'

const HELP = {
  ...COUNTERS,
  ...GAUGES,
  ...Object.fromEntries(Object.entries({ ...DIVIDED_COUNTERS, ...HISTOGRAMS }).map(([name, { help }]) => [name, help])),
}

describe('the numbers of a process', () => {
  it('have names and labels that Prometheus takes, each once, and a help text that is a phrase', () => {
    const tables = [COUNTERS, DIVIDED_COUNTERS, HISTOGRAMS, GAUGES]
    expect(Object.keys(HELP)).to.have.length(tables.reduce((count, table) => count + Object.keys(table).length, 0))
    for (const [name, help] of Object.entries(HELP)) {
      expect(name).to.match(/^[a-z][a-z_]*[a-z]$/)
      expect(help, name).to.match(/^[A-Z].*[^.]$/)
    }
    for (const { label } of Object.values(DIVIDED_COUNTERS)) expect(label).to.match(/^[a-z]+$/)
  })

  it('count nothing under a name that Prometheus adds itself, and measure seconds and bytes', () => {
    for (const name of Object.keys({ ...COUNTERS, ...DIVIDED_COUNTERS })) expect(name).to.not.match(/_total$/)
    for (const name of Object.keys(HISTOGRAMS)) expect(name).to.match(/_(seconds|bytes)$/)
  })

  it('of a histogram have bounds that rise', () => {
    for (const [name, { bounds }] of Object.entries(HISTOGRAMS))
      expect([...bounds], name).to.deep.equal([...new Set(bounds)].toSorted((a, b) => a - b))
  })

  it('show every way in which a run can end from the first scrape on', () => {
    const { values } = DIVIDED_COUNTERS.runs_ended
    expect(values).to.include.members([...RUN_ERROR_CODES, 'ok', 'invalid_output', 'plan_failed'])
  })
})
