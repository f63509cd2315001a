import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../../scripts/local-services/python-client.ts'
import { CuttingProxy } from '../../support/cutting-proxy.ts'
import { until } from '../../support/until.ts'
import type { RunningProduct } from './dialect-product.ts'

const PROGRAM = new URL('openai_client.py', import.meta.url).pathname
const RUN_MS = 60_000
const run = promisify(execFile)

/** The package `openai` of PyPI, unmodified: one program, because its start takes longer than all that it asks. */
export function openaiPythonTests(product: RunningProduct): void {
  const runsOnce = async () => {
    const { body } = await product().call('GET', '/runs?limit=200')
    return (body as { runs: { title?: string }[] }).runs.filter(({ title }) => title === '/sleep 2000')
  }

  it('sees the same completions, responses, calls, approvals, cuts, cancels and errors as the one of npm', async function () {
    this.timeout(RUN_MS)
    const env = { PATH: process.env['PATH'], PYTHONPATH: await requirePythonClient() }
    const url = new URL(`${product().url}/openai/v1`)
    using proxy = await CuttingProxy.open(Number(url.port), {})
    const urls = [url.href, `http://127.0.0.1:${proxy.port}${url.pathname}`]
    const ended = run('python3', [PROGRAM, ...urls], { env, timeout: RUN_MS })
    await until(async () => (await runsOnce()).length > 0, { what: 'the run of the connection that breaks' })
    proxy.cutAll()
    const { models, ...seen } = JSON.parse((await ended).stdout) as { models: string[] }
    expect(await runsOnce()).to.have.length(1)
    expect(models).to.include('main')
    const turn = ['reasoning', 'message', 'mcp_call', 'message', 'message']
    const asked = ['message', 'mcp_approval_request']
    expect(seen).to.deep.equal({
      retried: ['true', true],
      chat: [true, 'stop', true],
      'chat usage': true,
      parsed: ['WeatherOslo', 'WeatherOslo'],
      response: ['completed', turn, 'TodoWrite', 'agent-engine', 'again'],
      'approve True': [asked, 'completed', true],
      'approve False': [asked, 'failed', true],
      cut: [true, 'response.completed', true],
      stream: turn,
      cancel: ['in_progress', 'cancelled'],
      'own tools': ['tool_calls', '{"id":"A"}', 'stop', true],
      'own functions': [['message', 'function_call'], true],
      failed: 'server_error',
      refused: ['BadRequestError', 'invalid_request_error', '/tools/0/name', null],
      upstream: ['InternalServerError', 'upstream_error', null, 'provider_rejected'],
      broken: ['APIError', 'server_error', null, 'provider_rejected'],
      unknown: ['NotFoundError', 'not_found_error', null, null],
    })
  })
}
