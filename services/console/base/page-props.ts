/** The parts of the address that a page reads. */
export type PageProps = { params: Readonly<Record<string, string>>; query: URLSearchParams }
