import { PROVIDER_NAMES, PROVIDER_TYPES, type ProviderType } from '../../kernel/provider-types.ts'
import { type CatalogueModel, catalogueModels } from './prices.ts'

/** `GET /config/providers` (D8): what an instance of this type needs, and its models in the price catalogue. */
export type ProviderSpec = {
  type: ProviderType
  default_url: string | null
  requires_url: boolean
  requires_key: boolean
  models: readonly CatalogueModel[]
}

/** The types of which a tenant may create instances (D8.2). Only the standalone form has the demo. */
export const providerSpecs = ({ hasDemo }: { hasDemo: boolean }): ProviderSpec[] =>
  PROVIDER_NAMES.filter((type) => hasDemo || type !== 'demo').map((type) => {
    const { dialect, baseUrl, isKeyRequired } = PROVIDER_TYPES[type]
    return {
      type,
      default_url: baseUrl ?? null,
      requires_url: baseUrl === undefined && dialect !== 'demo',
      requires_key: isKeyRequired,
      models: catalogueModels(type),
    }
  })
