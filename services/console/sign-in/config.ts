/** The answer of `GET /console/config.json`: the path of the API, and how a person gets a token for it. */
export type ConsoleConfig = { base_path: string; sign_in: { kind: 'none' } | { kind: 'token' } | OidcSignIn }

export type OidcSignIn = { kind: 'oidc'; issuer: string; client_id: string; audience: string; scope: string }

export async function readConfig(): Promise<ConsoleConfig> {
  const response = await fetch('/console/config.json')
  if (!response.ok) throw new Error(`the server answers ${response.status}`)
  return (await response.json()) as ConsoleConfig
}
