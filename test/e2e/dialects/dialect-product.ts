import type { Product } from '../../support/product.ts'
import { until } from '../../support/until.ts'

/** The product of a describe block that is started before its first test. */
export type RunningProduct = () => Product

/** On a busy machine a worker may not confirm a run in time, which has not begun then. */
export const BUSY_TRIES = 5

export const tool = (name: string, input: unknown): string => `/tool ${name} ${JSON.stringify(input)}`
export const write = (path: string, content = 'hello'): string => tool('Write', { path, content })
export const agent = (...lines: string[]): string => tool('Agent', { description: 'help', prompt: lines.join('\n') })

type Pending = { id: string; session_id: string; run_id: string; tool_name: string }

/** The permission requests of a session or run that wait. */
async function pendingOf(product: Product, scope: string): Promise<Pending[]> {
  const { body } = await product.call('GET', '/permissions?limit=200')
  const { permissions } = body as { permissions: Pending[] }
  return permissions.filter(({ session_id, run_id }) => session_id === scope || run_id === scope)
}

/** Waits for a permission request and answers it through the API itself, as another client would. */
export async function replyNatively(product: Product, scope: string, reply: object): Promise<void> {
  const [asked] = await until(
    async () => {
      const pending = await pendingOf(product, scope)
      return pending.length > 0 && pending
    },
    { what: 'a permission request' },
  )
  await product.call('POST', `/sessions/${scope}/permissions/${asked?.id}`, reply)
}
