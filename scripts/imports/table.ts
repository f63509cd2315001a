/** Who may import whom (style.md 2.1), as globs over the project's paths. */

export type Layer = 'kernel' | 'port' | 'domain' | 'adapter' | 'http' | 'service' | 'root' | 'script' | 'test'

/** The first line that matches a file is its layer. */
export const LAYERS: readonly (readonly [Layer, readonly string[]])[] = [
  ['root', ['services/*/{main,open-*,standalone}.{ts,mts}', 'services/wiring/*.ts']],
  ['http', ['services/http/**']],
  ['service', ['services/**']],
  ['port', ['shared/*/port.ts']],
  ['kernel', ['shared/*.ts', 'shared/config/**']],
  [
    'adapter',
    [
      'shared/{broker,rate}/**/{memory,redis}{,-*}.ts',
      'shared/store/{mongo,sqlite}/**',
      'shared/providers/{ai-sdk,chat,demo}/**',
      'shared/tools/mcp/**',
      'shared/net/egress{,-*}.ts',
    ],
  ],
  ['domain', ['shared/**']],
  ['script', ['scripts/**']],
  ['test', ['test/**']],
]

/**
 * Besides these, a domain or a service file may import its own folder (SIDEWAYS tells the domain which others), and an
 * adapter the other files of the same adapter and its folder's domain files: what is written once for all adapters.
 */
export const MAY_IMPORT: Record<Layer, readonly Layer[]> = {
  kernel: ['kernel'],
  port: ['kernel'],
  domain: ['kernel', 'port'],
  adapter: ['kernel', 'port'],
  http: ['kernel', 'port', 'domain'],
  service: ['kernel', 'port', 'domain', 'http'],
  root: ['kernel', 'port', 'domain', 'adapter', 'http', 'service', 'root'],
  script: ['kernel', 'port', 'domain', 'adapter', 'http', 'service', 'root', 'script'],
  test: ['kernel', 'port', 'domain', 'adapter', 'http', 'service', 'root', 'script', 'test'],
}

/** Domain folders that stand on other domain folders: flows, plans -> engine -> store, providers; never back. */
export const SIDEWAYS: Record<string, readonly string[]> = {
  flows: ['engine', 'store', 'providers'],
  plans: ['engine', 'store', 'providers'],
  engine: ['store', 'providers'],
  customers: ['store'],
}

/**
 * Packages and Node modules that not every file may import. A package that is missing here is imported by nobody in
 * `shared` and `services`; a Node module that is missing is open to all.
 */
export const FENCES: Record<string, readonly string[]> = {
  express: ['services/gateway/**', 'services/http/**', 'services/ops/**'],
  'swagger-ui-dist': ['services/gateway/**'],
  winston: ['shared/log.ts'],
  'prom-client': ['services/ops/**'],
  undici: ['shared/net/egress{,-*}.ts', 'shared/providers/ai-sdk/**'],
  '@ai-sdk/*': ['shared/providers/ai-sdk/**'],
  '@modelcontextprotocol/client': ['shared/tools/mcp/**'],
  '@pydantic/genai-prices': ['shared/providers/prices{,-*}.ts'],
  ajv: ['shared/api/**', 'shared/tools/registry.ts', 'shared/flows/**'],
  'ajv-formats': ['shared/api/**', 'shared/tools/registry.ts', 'shared/flows/**'],
  yaml: ['shared/api/**', 'shared/tools/agents/load-skills.ts'],
  re2js: ['shared/tools/**', 'shared/flows/**'],
  picomatch: ['shared/tools/**'],
  'lru-cache': ['shared/**', 'services/**'],
  ioredis: ['shared/broker/redis-link.ts'],
  'jwks-rsa': ['shared/auth/**'],
  jsonwebtoken: ['shared/auth/**'],
  bullmq: ['shared/queue/bullmq{,-*}.ts'],
  mongodb: ['shared/store/mongo/**'],
  'node:sqlite': ['shared/store/sqlite/**'],
  'node:process': ['services/*/main.ts'],
  'node:child_process': ['shared/tools/**'],
}

/** Globals with a fence. `fetch` follows redirects and resolves names unguarded: the way out is net/egress. */
export const GLOBALS: Record<string, readonly string[]> = {
  // Of the others process-group.ts alone: nothing but `process.kill` ends a process group.
  process: ['services/*/main.ts', 'services/wiring/process.ts', 'shared/tools/process/process-group.ts'],
  fetch: ['shared/net/egress{,-*}.ts'],
}

/** Dynamic imports hide an edge, so each is here for a reason: what costs memory or time and is seldom needed. */
export const LAZY: readonly (readonly [from: string, to: string])[] = [
  ['services/standalone/main.ts', 'services/standalone/standalone.mts'], // an older Node cannot read it
  ['services/{gateway,worker,wiring}/*.ts', 'shared/{auth,net,providers,store,tools}/**'],
  ['services/gateway/open-rate-limit.ts', 'shared/broker/redis-link.ts'], // the standalone form wants it for a shared rate limit alone
  ['shared/providers/**', '@ai-sdk/*'],
  ['shared/providers/**', 'undici'],
  ['shared/providers/**', '@pydantic/genai-prices'],
  ['shared/tools/**', '@modelcontextprotocol/client'],
  ['shared/tools/**', 'picomatch'],
  ['shared/tools/**', 're2js'],
  ['services/ops/open-ops.ts', 'services/ops/**'], // express in a worker, and a few ms of every start
  ['services/ops/**', 'prom-client'], // most processes are never scraped
  ['shared/api/**', 'yaml'],
  ['shared/api/**', 'shared/api/decode.ts'], // ajv behind it
]

/** Entry points: their exports are for whoever runs them (Node, mocha, tests). */
export const ENTRIES: readonly string[] = ['services/*/main.ts', 'scripts/*', 'test/*/main.ts', 'test/**/*.test.ts']
