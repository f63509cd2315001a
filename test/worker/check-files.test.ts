import { expect } from 'chai'
import { checkFiles } from '../../services/worker/begin-run.ts'
import type { Models, Route } from '../../shared/agent/engine/resources.ts'
import type { Ability, ModelProvider } from '../../shared/agent/providers/port.ts'
import type { AttachedFile } from '../../shared/kernel/attachment.ts'
import { tenantId } from '../support/tenant.ts'

const file = (media_type: string): AttachedFile => ({ file_id: 'f', name: 'f', media_type, bytes: 1 })
const provider: ModelProvider = {
  type: 'openai-compatible',
  takesFile: (_model, mediaType) => !mediaType.startsWith('audio/'),
  stream: () => expect.fail('the model was called'),
}

const check = (types: string[], vision?: boolean, more: Partial<Route> = {}) =>
  checkFiles(
    tenantId('acme'),
    { files: types.map(file) },
    {
      models: {
        modelsFor: () => ({ main: () => ({ primary: { provider, model: 'm' }, ...more }) }) as unknown as Models,
      },
      probes: async () => (vision === undefined ? undefined : { vision }),
    },
  ).then(
    () => undefined,
    (cause: unknown) => cause,
  )

describe('checkFiles', () => {
  it('D47.4: refuses an image for a model that a probe has found blind, and no other file for that', async () => {
    const refused = { code: 'unsupported_attachment', status: 400, param: '/attachments/1' }
    expect(await check(['text/plain', 'image/png'], false)).to.include(refused)
    expect(await check(['application/pdf', 'text/plain'], false)).to.equal(undefined)
    for (const vision of [true, undefined]) expect(await check(['image/png'], vision)).to.equal(undefined)
  })

  it('D56: allows what the other model takes, where the route chooses by a strategy', async () => {
    const route = (lacks: Ability[]): Partial<Route> => ({
      ...{ strategy: 'cheapest', fallback: { provider, model: 'n', lacks } },
    })
    expect(await check(['image/png'], false, route([]))).to.equal(undefined)
    expect(await check(['image/png'], false, route(['images']))).to.include({ code: 'unsupported_attachment' })
    const ordered = check(['image/png'], false, { ...route([]), strategy: 'order' })
    expect(await ordered).to.include({ code: 'unsupported_attachment' })
  })

  it("D47.4: refuses what the provider's format has no form for, before the model is called", async () => {
    expect(await check(['image/png', 'audio/wav'])).to.include({
      code: 'unsupported_attachment',
      param: '/attachments/1',
    })
  })
})
