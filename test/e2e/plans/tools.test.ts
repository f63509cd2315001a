import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { planRunId, stepRunId } from '../../../shared/kernel/ids.ts'
import type { Answer, Received } from '../../support/model-server/model-server.ts'
import { step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms } from '../../support/product.ts'
import { until } from '../../support/until.ts'

/** Answers the first request of a step with its calls, and the next with `said`. */
const calling = (calls: Record<string, Answer>) => (request: Received) =>
  request.results.length > 0 ? 'said' : (calls[stepIdOf(request)] ?? 'said')

inBothForms('the tools of plans', (startProduct, form) => {
  const bench = usePlans(startProduct, form, { PLAN_PERMISSIONS: '{"Edit":"deny","Glob":"deny"}' })
  const { submit, ended, begun } = bench

  const resultsOf = (tool: string) => {
    const results = bench.product.model.requests.flatMap(({ results: each }) => each)
    return results.filter(({ id }) => id === tool).map(({ text }) => text)
  }
  const tenantDir = () => join(bench.product.dataDir, 'workspaces', 't_default')
  const folderOf = (id: string) => join(tenantDir(), planRunId(id))
  const isGone = (path: string) =>
    access(path).then(
      () => false,
      () => true,
    )

  it('D7.3, D50.3c: the steps share the workspace of their plan, which is listed while it is at work, and removed after its end', async () => {
    const gate = Promise.withResolvers<void>()
    const calls = {
      a: [{ tool: 'Write', input: { path: 'notes/a.txt', content: 'from step a' }, id: 'write' }],
      b: [
        { hold: gate.promise },
        { tool: 'Read', input: { path: 'notes/a.txt' }, id: 'read' },
        { tool: 'Deliver', input: { paths: ['notes/a.txt'] }, id: 'deliver' },
      ],
    }
    bench.product.model.otherwise(calling(calls))
    const { id } = await submit({ steps: [step('a'), step('b', 'a')] })
    await begun('b')
    expect(await readFile(join(folderOf(id), 'notes', 'a.txt'), 'utf8')).to.equal('from step a')
    const runOf = (stepId: string) => stepRunId(id, { stepId, attempt: 0 })
    await until(async () => (await bench.call('GET', `/runs/${runOf('a')}`)).status === 200, {
      what: 'the record of a',
    })
    for (const run of [planRunId(id), runOf('a')]) {
      const { files } = (await bench.call('GET', `/runs/${run}/files`)).body as {
        files: { path: string; changed_by: { run_id: string } }[]
      }
      expect(files.map(({ path, changed_by: by }) => [path, by.run_id])).to.deep.equal([['notes/a.txt', run]])
      const content = await bench.call('GET', `/runs/${run}/files/content?path=notes/a.txt`)
      expect(content.text).to.equal('from step a')
    }
    gate.resolve()
    const plan = await ended(id)
    expect(plan).to.deep.include({ status: 'done', step_outputs: { a: 'said', b: 'said' } })
    expect(resultsOf('read')).to.have.length(1)
    expect(resultsOf('read')[0]).to.include('from step a')
    await until(() => isGone(folderOf(id)), { what: 'the folder of the plan to be removed' })
    for (const run of [planRunId(id), runOf('a')]) {
      const late = await bench.call('GET', `/runs/${run}/files`)
      expect([late.status, late.text], run).to.satisfy(
        ([status, text]: [number, string]) => status === 404 && text.includes('by its tool Deliver'),
      )
    }
    const artifacts = async () =>
      (await bench.call('GET', `/runs/${runOf('b')}`)).body as { artifacts?: { name: string }[] }
    await until(async () => (await artifacts()).artifacts?.[0]?.name === 'a.txt', { what: 'what b has delivered' })
  })
})
