export class Memory {}
