/** What the address tells a page. */
export type PageProps = { params: Readonly<Record<string, string>>; query: URLSearchParams }
