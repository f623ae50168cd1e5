{-# LANGUAGE GADTs #-}
module Order
  ( Order (..)
  , Priced (..)
  , ship
  ) where

import qualified Data.Map.Strict as Map
import Data.Maybe (fromMaybe)
import Stock

-- | A record.
data Order a = Order
  { orderId :: Int
  , orderLines :: [Line a]
  } deriving (Show, Eq)

data Shape = Circle Double | Square { side :: Double } | Double :+: Double

newtype Wrapper m a = Wrapper { runWrapper :: m a }

type Lines a = [Line a]

class (Eq a) => Priced a where
  type Currency a
  total :: a -> Int
  label :: Bool -> a -> String
  label _ _ = "priced"

instance Priced (Order a) where
  total order = length (orderLines order)

data Expr t where
  Lit :: Int -> Expr Int
  Add :: Expr Int -> Expr Int -> Expr Int

type family Elem c

ship :: Order a -> Warehouse -> Either String (Order a)
ship order warehouse
  | total order > limit = Left "too many"
  | otherwise = Right (reserve warehouse order)
  where
    limit = 100

(<+>) :: Int -> Int -> Int
a <+> b = a + b

infixl 6 <+>

area (Circle r) = r * r
area _ = 0

emptyOrder = Order { orderId = 0, orderLines = [] }

foreign import ccall "math.h sin" c_sin :: Double -> Double
