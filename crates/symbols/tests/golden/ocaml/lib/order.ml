open Printf
open Stock
include Base.Comparable

type 'a line = { price : int; mutable count : int; note : 'a option }
and status = Open | Closed of string | Lost
type id = int
exception Missing of string
type shape += Custom

let limit = 100

let total ?(verbose = false) ~rate line = line.price * line.count * rate

let rec even n = n = 0 || odd (n - 1)
and odd n = n <> 0 && even (n - 1)

let ( +! ) a b = a + b

let ship : int -> unit = function
  | 0 -> printf "none"
  | n -> let local x = Stock.reserve x in local n

module type PRICED = sig
  type t
  val price : t -> int
end

module Make (P : PRICED) : PRICED with type t = P.t = struct
  type t = P.t
  let price = P.price
end

module M = Map.Make (String)

class virtual document (name : string) = object (self)
  inherit Stock.base
  val mutable count = 0
  method name = name
  method virtual save : unit
  method private bump by = count <- count + by
end

external c_sin : float -> float = "sin"
