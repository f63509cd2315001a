import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { parse } from 'yaml'
import { COUNTERS, DIVIDED_COUNTERS, GAUGES, HISTOGRAMS } from '../../shared/kernel/metrics.ts'

const folder = new URL('../../deploy/observability/', import.meta.url)
const read = (name: string) => readFile(new URL(name, folder), 'utf8')

const total = (names: object) => Object.keys(names).map((name) => `agent_engine_${name}_total`)
const plain = (names: object) => Object.keys(names).map((name) => `agent_engine_${name}`)
const NAMES = [...total(COUNTERS), ...total(DIVIDED_COUNTERS), ...plain(GAUGES), ...plain(HISTOGRAMS)]

/** The metrics of this product in an expression, histograms without the suffixes of their series. */
const namesIn = (text: string) =>
  [...text.matchAll(/agent_engine_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))

type Rule = { alert: string; expr: string; annotations: { summary: string } }
type Panel = { title: string; gridPos: { x: number; y: number }; targets: { expr: string }[] }

describe('what is shipped to observe the processes', () => {
  it('the alerts name metrics that exist, and each says what is wrong', async () => {
    const { groups } = parse(await read('alerts.yaml')) as { groups: { rules: Rule[] }[] }
    const rules = groups.flatMap((group) => group.rules)
    expect(rules).to.have.length.above(5)
    for (const { alert, expr, annotations } of rules) {
      expect(NAMES, alert).to.include.members(namesIn(expr))
      expect(annotations.summary, alert).to.match(/\.$/)
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length)
  })

  it('no alert depends on the name of a scrape job, which Kubernetes annotations do not fix', async () => {
    expect(await read('alerts.yaml')).not.to.match(/\bjob\s*(=|!=|=~)/)
  })

  it('the dashboard shows every metric that exists, and no other, each panel in a place of its own', async () => {
    const { panels } = JSON.parse(await read('dashboard.json')) as { panels: Panel[] }
    const shown = namesIn(panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join(' '))
    expect([...new Set(shown)].toSorted()).to.deep.equal(NAMES.toSorted())
    const places = new Set(panels.map(({ gridPos: { x, y } }) => `${x} ${y}`))
    expect(places.size).to.equal(panels.length)
  })

  it('the description lists every metric with its help text', async () => {
    const text = await read('README.md')
    const helps = [...Object.values(COUNTERS), ...Object.values(GAUGES)]
    const divided = [...Object.values(DIVIDED_COUNTERS), ...Object.values(HISTOGRAMS)].map(({ help }) => help)
    for (const wanted of [...NAMES.map((name) => `\`${name}\``), ...helps, ...divided]) expect(text).to.include(wanted)
  })
})
