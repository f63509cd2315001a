import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AUDIENCE, Issuer } from '../../test/support/issuer/issuer.ts'
import { newSigner } from '../../test/support/issuer/signer.ts'
import { answerDirectives } from '../../test/support/model-server/directives.ts'
import { type Product, startMembers, startStandalone } from '../../test/support/product.ts'
import { until } from '../../test/support/until.ts'

/** A tool, as the model is offered it behind `mcp__`, and its input. */
export type Call = readonly [name: string, input: object]
type Headers = Record<string, string>
/** A session of one tenant. It has one run at a time. */
export type Caller = { headers: Headers; session: string }
export type Answer = { output: string; isError: boolean }

export type Trial = { product: Product; callers: Caller[]; tenants: Headers[] }

const FORMS = { standalone: startStandalone, cluster: startMembers }

/** Starts the product with these servers, and works with sessions of two tenants when all servers are ready. */
export async function withProduct(
  { form, folder }: { form: keyof typeof FORMS; folder: string },
  mcpServers: object,
  work: (trial: Trial) => Promise<void>,
): Promise<void> {
  const config = join(folder, 'mcp.json')
  await writeFile(config, JSON.stringify({ mcpServers }))
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const begun = performance.now()
  const product = await FORMS[form]({
    ...{ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, MCP_CONFIG: config, TOOL_PERMISSIONS: '{"mcp__*":"allow"}' },
  })
  product.model.otherwise(answerDirectives)
  try {
    console.log(`the ${form} form serves after ${Math.round(performance.now() - begun)} ms`)
    const tenants = await Promise.all(
      ['acme', 'globex'].map(async (client) => ({ authorization: `Bearer ${await issuer.token(client)}` })),
    )
    await untilReady(product, tenants[0] ?? {})
    const [first = {}, second = {}] = tenants
    const callers = await Promise.all([first, first, second].map((headers) => openSession(product, headers)))
    await work({ product, callers, tenants })
  } catch (cause) {
    console.error(product.log.filter((line) => /"level":"(?:warn|error)"/.test(line)).join(''))
    throw cause
  } finally {
    await product.close()
    await issuer.close()
  }
}

async function untilReady(product: Product, headers: Headers): Promise<void> {
  const states = async () => {
    const { body } = await product.call('GET', '/tools', undefined, headers)
    return (body as { mcp_servers: { name: string; state: string }[] }).mcp_servers
  }
  console.log(`at once: ${(await states()).map(({ name, state }) => `${name} ${state}`).join(', ')}`)
  await until(async () => (await states()).every(({ state }) => state === 'ready'), { what: 'all servers' })
}

export async function openSession(product: Product, headers: Headers): Promise<Caller> {
  const { body } = await product.call('POST', '/sessions', {}, headers)
  return { headers, session: (body as { session_id: string }).session_id }
}

/** Begins a run that makes the call. */
export async function beginCall(product: Product, { headers, session }: Caller, [name, input]: Call) {
  const prompt = `/tool mcp__${name} ${JSON.stringify(input)}`
  const stream = await product.stream(`/sessions/${session}/messages`, { prompt }, headers)
  return {
    /** Resolves when the run has told this event. */
    until: (event: string) => stream.until(event),
    async answer(): Promise<Answer> {
      await stream.all()
      const { data } = stream.frames.find(({ event }) => event === 'tool_result') ?? {}
      const output = String(data?.['output'] ?? stream.frames.at(-1)?.data['message'])
      return { output, isError: data?.['is_error'] !== false }
    },
  }
}

export async function callTool(product: Product, caller: Caller, call: Call): Promise<Answer> {
  return (await beginCall(product, caller, call)).answer()
}

/** Each worker starts servers of its own, and calls a session's tools without those that are not ready. */
export async function callWhenThere(product: Product, caller: Caller, call: Call): Promise<Answer> {
  const callIfThere = async () => {
    const called = await callTool(product, caller, call)
    return called.output.startsWith('There is no tool') ? undefined : called
  }
  return until(callIfThere, { what: call[0] })
}
