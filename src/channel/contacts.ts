import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { normalAddress } from './address.ts'
import type { InboundSender } from './message.ts'

/** An address of a contact, at channels of one kind. */
export interface ContactAddress {
  kind: string
  address: string
  /**
   * When the address became the contact's, in milliseconds since the epoch. Defaults to 0, it always was, before the contacts belong to a
   * channel of a Heed, and to the present after that.
   */
  since?: number
}

/** A person or a service, with the addresses that are known to be theirs. */
export interface Contact {
  id: string
  name?: string
  addresses: readonly ContactAddress[]
}

/** The contact that a message is from. */
export interface ResolvedContact {
  contactId: string
  /** Since when the address is the contact's. */
  since: number
}

/** All addresses of one `Contacts`. */
const maxAddresses = 100_000

/**
 * Finds the contact of a verified sender. Only addresses that the program added are found: receiving a message adds none, and names are
 * not compared. An address belongs to one contact.
 */
export class Contacts {
  readonly #names = new Map<string, string | undefined>()
  readonly #owners = new Map<string, ResolvedContact & { kind: string; address: string }>()
  /** The clock of the Heed, once its messages are resolved. */
  #now: (() => number) | undefined

  constructor(contacts: readonly Contact[] = []) {
    for (const contact of contacts) this.add(contact)
  }

  /** @internal From now on, an address that is added is the contact's from then on: it widens no watch that is open. */
  connect(now: () => number): void {
    this.#now ??= now
  }

  /** Adds a contact. A watch that is open expects it by its id, and counts addresses that were the contact's when it was registered. */
  add(contact: Contact): void {
    checkNames('contact', contact, ['id', 'name', 'addresses'])
    const { id, name, addresses } = contact
    checkName('contact.id', id)
    if (name !== undefined) checkName('contact.name', name)
    if (!Array.isArray(addresses)) throw refused('contact.addresses', 'a list')
    if (this.#names.has(id)) throw new HeedError('id_taken', `There is a contact '${id}' already. Use addAddress().`, { details: { id } })
    const entries = addresses.map((address) => this.#entry(id, address))
    if (new Set(entries.map(([key]) => key)).size < entries.length) throw refused('contact.addresses', 'a list without repeats')
    this.#names.set(id, name)
    for (const [key, owner] of entries) this.#owners.set(key, owner)
  }

  /** Adds an address. Watches that were registered before `since` don't count it as the contact's. */
  addAddress(contactId: string, address: ContactAddress & { since: number }): void {
    this.#known(contactId)
    const [key, owner] = this.#entry(contactId, address)
    this.#owners.set(key, owner)
  }

  /** The address is unknown from now on. Returns whether it was known. */
  removeAddress(kind: string, address: string): boolean {
    const normal = normalAddress(kind, address)
    return normal !== undefined && this.#owners.delete(keyOf(kind, normal))
  }

  /** Gives all addresses of one contact to another, from `since` on, and removes the first. */
  merge(from: string, into: string, since: number): void {
    this.#known(from)
    this.#known(into)
    checkWhole('since', since)
    if (from === into) throw refused('into', 'another contact')
    for (const [key, owner] of this.#owners) if (owner.contactId === from) this.#owners.set(key, { ...owner, contactId: into, since })
    this.#names.delete(from)
  }

  /** The contact whose address this is; undefined for a sender that is unverified or unknown. */
  resolve(kind: string, sender: InboundSender): ResolvedContact | undefined {
    if (!sender.verified) return undefined
    const normal = normalAddress(kind, sender.address)
    const owner = normal === undefined ? undefined : this.#owners.get(keyOf(kind, normal))
    return owner && { contactId: owner.contactId, since: owner.since }
  }

  has(contactId: string): boolean {
    return this.#names.has(contactId)
  }

  /** All contacts, to be stored by the program. */
  list(): Contact[] {
    const found = new Map<string, ContactAddress[]>([...this.#names.keys()].map((id) => [id, []]))
    for (const { contactId, kind, address, since } of this.#owners.values()) found.get(contactId)?.push({ kind, address, since })
    return [...this.#names].map(([id, name]) => ({ id, ...(name === undefined ? {} : { name }), addresses: found.get(id) ?? [] }))
  }

  #known(id: string): void {
    if (!this.#names.has(id)) throw new HeedError('not_found', `There is no contact '${id}'. Add it with add().`, { details: { id } })
  }

  #entry(contactId: string, given: ContactAddress): [string, ResolvedContact & { kind: string; address: string }] {
    checkNames('address', given, ['kind', 'address', 'since'])
    const { kind, address, since = this.#now?.() ?? 0 } = given
    checkName('address.kind', kind)
    checkName('address.address', address)
    checkWhole('address.since', since)
    const normal = normalAddress(kind, address)
    if (normal === undefined) throw refused('address.address', `an address of the kind '${kind}', as docs/channels.md describes it`)
    const key = keyOf(kind, normal)
    const owner = this.#owners.get(key)
    if (owner) {
      const details = { contactId: owner.contactId }
      throw new HeedError('id_taken', `The contact '${owner.contactId}' has this address. Remove it there, or merge the two.`, { details })
    }
    if (this.#owners.size >= maxAddresses) throw new HeedError('too_large', `There are ${maxAddresses} addresses already. Remove some.`)
    return [key, { contactId, since, kind, address: normal }]
  }
}

/** Whether a watch that was registered at this time counts the sender as the contact: a later address widens no open watch. */
export function countsFor({ since }: ResolvedContact, registeredAt: number): boolean {
  return since <= registeredAt
}

function keyOf(kind: string, address: string): string {
  return JSON.stringify([kind, address])
}
