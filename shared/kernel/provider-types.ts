/** The wire format that is used with a provider. It selects the adapter (`services/wiring/models/create-provider.ts`). */
export type Dialect = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google' | 'demo'

export type ProviderDescriptor = Readonly<{
  dialect: Dialect
  /** The dialect for hosts other than the provider's own, such as a gateway in front of it. Default: `dialect`. */
  gateway?: { dialect: Dialect; ownHosts: RegExp }
  /** The provider's own address. Without one MODEL_BASE_URL is required. */
  baseUrl?: string
  /** The path of the provider's own format, beside that of the dialect. */
  ownFormatPath?: RegExp
  /** Variables in which the provider's users usually keep its key, the most common one first. */
  keyVariables: readonly string[]
  /** Whether the provider's own address requires a key. */
  isKeyRequired: boolean
  /** The provider's id in `@pydantic/genai-prices`. Without one, the model's name alone selects the price. */
  priceId?: string
  /** Whether it accepts calls in batches, for half of the price. */
  hasBatches?: boolean
  /** Whether it runs on the operator's machine or in this process: it then costs nothing, and its context window is in no catalogue. */
  isLocal: boolean
  /** Used when MODEL is not set. */
  defaultModel?: string
}>

/** Every value of MODEL_PROVIDER (D1.3). A provider that speaks an existing dialect is one row here. */
const TYPES = {
  openai: {
    // The responses API is used at OpenAI only: only in that API can OpenAI's reasoning models call tools while they reason.
    dialect: 'openai-responses',
    gateway: { dialect: 'openai-chat', ownHosts: /(?:^|\.)openai\.com$/ },
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    isKeyRequired: true,
    priceId: 'openai',
    hasBatches: true,
    isLocal: false,
  },
  anthropic: {
    dialect: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    isKeyRequired: true,
    priceId: 'anthropic',
    hasBatches: true,
    isLocal: false,
  },
  google: {
    dialect: 'google',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariables: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    isKeyRequired: true,
    priceId: 'google',
    hasBatches: true,
    isLocal: false,
  },
  // No usual key variable: a key must only be sent to the provider that it belongs to.
  'openai-compatible': { dialect: 'openai-chat', keyVariables: [], isKeyRequired: false, isLocal: false },
  // Answers come in Ollama's own format, unless MODEL_BASE_URL names another path; the list of models is below `/v1`.
  ollama: {
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:11434/v1',
    ownFormatPath: /^(?:\/api(?:\/chat)?)?$/,
    keyVariables: ['OLLAMA_API_KEY'],
    isKeyRequired: false,
    isLocal: true,
  },
  demo: { dialect: 'demo', keyVariables: [], isKeyRequired: false, isLocal: true, defaultModel: 'demo' },
} satisfies Record<string, ProviderDescriptor>

export type ProviderType = keyof typeof TYPES

export const PROVIDER_TYPES: Readonly<Record<ProviderType, ProviderDescriptor>> = TYPES

export const PROVIDER_NAMES = Object.keys(TYPES) as ProviderType[]

/** The descriptor of a type; `undefined` for a name that is no type. */
export const findProviderType = (type: string): ProviderDescriptor | undefined =>
  Object.hasOwn(TYPES, type) ? PROVIDER_TYPES[type as ProviderType] : undefined
