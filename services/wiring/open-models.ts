import type { Config } from '../../shared/config/config.ts'
import type { ModelTarget } from '../../shared/config/model.ts'
import type { ModelRoute } from '../../shared/providers/port.ts'
import { openProvider } from './open-provider.ts'

export type Models = { primary: ModelRoute | undefined; fallback: ModelRoute | undefined }

/** Opens the providers of the server's model and of its fallback (D1.3). The cluster form may have no model (D1.4). */
export async function openModels({ model, fallback }: Pick<Config, 'model' | 'fallback'>): Promise<Models> {
  return { primary: model && (await openRoute(model)), fallback: fallback && (await openRoute(fallback)) }
}

async function openRoute({ provider: type, model, ...address }: ModelTarget): Promise<ModelRoute> {
  return { provider: await openProvider({ type, ...address }), model }
}
