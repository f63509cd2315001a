import { expect } from 'chai'
import type { FlowFailure } from '../../../shared/kernel/events.ts'
import { answerOf, DEFINITION, GOOD, KEYS, lastOf, putInstance, useFlows } from '../../support/flows.ts'
import { inBothForms } from '../../support/product.ts'

const FALLBACK = { fallback_instance: 'spare', fallback_model: 'm-9' }
const REFUSED = { status: 401, message: `Incorrect API key provided: ${KEYS.main}` }

// The other failures, and what each of them is for the fallback: test/work/flows/execute/{fallback,outcome}.test.ts.
inBothForms('failures of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)

  it('api.md Named flows 4 and 6: a provider that refuses the key, or stops in the middle, is a 502 without the key; the fallback takes the call', async () => {
    await putInstance(bench, 'quick', { url: bench.main.url, key: KEYS.main, options: { timeout_secs: 1 } })
    const name = await bench.publish(DEFINITION)
    bench.main.otherwise((call) => (lastOf(call).includes('quick') ? [{ text: '{"ans' }, { hang: true }] : REFUSED))
    bench.spare.otherwise(() => GOOD)
    const seen: string[] = []
    for (const [provider_instance, code] of [
      ['main', 'provider_auth'],
      ['quick', 'timeout'],
    ]) {
      const body = { input: { text: provider_instance }, provider_instance }
      const failed = await bench.run(name, body)
      expect(failed.status, failed.text).to.equal(502)
      const { error } = failed.body as { error: FlowFailure }
      expect(error).to.include({ type: 'upstream_error', code })
      expect(error.message.startsWith(`the main agent failed at instance ${provider_instance}: `)).to.equal(true)
      const record = await bench.dispatch(failed)
      expect(record).to.deep.include({ status: 'error', output: null, served_instance: null, error })
      const frames = await (await bench.product.stream(`/dispatches/${record['trace_id']}/events`)).all()
      expect(frames.at(-1)?.data).to.include({ code, status: 502, error: error.message })
      seen.push(failed.text, JSON.stringify([record, frames]))

      const served = await bench.run(name, { ...body, ...FALLBACK })
      expect(answerOf(served)).to.deep.include({ served_instance: 'spare', output: { answer: 'yes' } })
      expect(await bench.dispatch(served)).to.include({ status: 'ok', provider_instance, served_instance: 'spare' })
    }
    expect(bench.spare.requests.map(({ model }) => model)).to.deep.equal(['m-9', 'm-9'])
    expect([...seen, ...bench.product.log].join('\n')).not.to.contain('canary')
  })
})
